// Stamps of two threads in the wrong order at one address: the model is that of the true order.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "reader/heap_model.h"
#include "reader/read.h"
#include "reader/validate.h"
#include "tests/support/trace_writer.h"

namespace traceaf::reader {
namespace {

using testing::TraceWriter;
using wire::Entry;

constexpr uint64_t kJitter = HeapModel::kInversionNs - 500;
constexpr uint64_t kThreads = 4, kAddresses = 12, kTypes = 3;

struct Op {
  uint64_t time;  // true, ns
  uint64_t m, address, type;
  bool birth;
};

// A run of threads that hand blocks to each other. Births and deaths at one address alternate, and two births (or two
// deaths) of one address are further apart than stamps can be wrong; a birth and a death may follow at once.
std::vector<Op> random_run(uint64_t seed, size_t size) {
  std::mt19937_64 random(seed);
  struct State {
    bool live = false;
    uint64_t last = 0, before_last = 0;
  };
  std::map<uint64_t, State> states;
  std::vector<Op> out;
  uint64_t time = 100'000;
  while (out.size() < size) {
    time += 1 + random() % 700;
    const uint64_t address = 0x10010 + random() % kAddresses * 16;
    State& state = states[address];
    if (time <= state.before_last + kJitter) continue;
    out.push_back({time, 1 + random() % kThreads, address, 1 + random() % kTypes, !state.live});
    state = {!state.live, time, state.last};
  }
  return out;
}

// Stamps in ticks of `frequency`, one of `every` up to kJitter ns early (0: none); a thread's own never go back.
testing::Bytes trace_of(const std::vector<Op>& run, uint64_t every, uint64_t frequency, bool exact) {
  std::mt19937_64 random(run.size());
  const auto ticks = [&](uint64_t ns) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(ns) * frequency / 1'000'000'000);
  };
  TraceWriter trace;
  auto& gen = trace.generation(1, 1000, true);
  gen.sync(1000, frequency).info().process(1000, exact);
  gen.node(8, 1, 0, 0x400100).node(9, 8, 0, 0x400200);
  gen.site(1, 8, Entry::k_malloc, 24).site(2, 9, Entry::k_malloc, 100).site(3, 8, Entry::k_realloc, 200);
  for (uint64_t m = 1; m <= kThreads; ++m) gen.thread(m, 100 + m, 1000, 0, "t");
  std::map<uint64_t, uint64_t> last;
  for (const Op& op : run) {
    const uint64_t early = every != 0 && random() % every == 0 ? random() % (kJitter + 1) : 0;
    uint64_t& stamp = last[op.m];
    stamp = std::max(stamp, 1000 + ticks(op.time - early));
    if (op.birth) {
      gen.alloc(op.m, stamp, op.address, op.type);
    } else {
      gen.free(op.m, stamp, op.address);
    }
  }
  gen.end_row(1000 + ticks(run.back().time + 1'000'000));
  return trace.bytes();
}

Profile read(const testing::Bytes& trace) {
  auto profile = read_profile_bytes(trace, {}, "t");
  EXPECT_TRUE(profile.ok()) << profile.error().text();
  return profile.ok() ? std::move(profile.value()) : Profile();
}

using Numbers = std::vector<uint64_t>;
// What does not depend on the stamps themselves, by name.
std::map<std::string, Numbers> facts(const Profile& p) {
  std::map<std::string, Numbers> out;
  const auto put = [&](const std::string& name, std::initializer_list<Amount> amounts) {
    for (const Amount& a : amounts) out[name].insert(out[name].end(), {a.count, a.bytes});
  };
  put("all", {p.allocated, p.freed, p.live, p.temporary});
  out["faults"] = {p.double_births, p.unknown_frees, p.frees_before, p.moves};
  for (const Site& s : p.sites) {
    put("site " + std::to_string(p.nodes[s.node].offset) + " " + std::to_string(s.entry),
        {s.allocated, s.freed, s.live, s.temporary});
  }
  for (const Thread& t : p.threads) put("thread " + std::to_string(t.m), {t.allocated, t.freed, t.temporary});
  for (const LiveBlock& b : p.live_blocks) out["block " + std::to_string(b.address)] = {b.size, b.m};
  return out;
}

class Inversions : public ::testing::TestWithParam<uint64_t> {};  // the frequency

TEST_P(Inversions, TheModelIsThatOfTheTrueOrder) {
  uint64_t reordered = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const auto run = random_run(seed, 1500);
    const Profile truth = read(trace_of(run, 0, GetParam(), true));
    EXPECT_EQ(truth.double_births + truth.unknown_frees, 0U);
    const testing::Bytes stamped = trace_of(run, 1, GetParam(), true);
    const Profile p = read(stamped);
    ASSERT_EQ(facts(p), facts(truth)) << "seed " << seed;
    reordered += p.reordered;
    const auto report = validate_bytes(stamped, "t");
    ASSERT_TRUE(report.ok());
    EXPECT_TRUE(report.value().ok()) << report.value().findings.front().text();
    uint64_t warned = 0;
    for (const auto& count : report.value().counts) warned += count.rule == "inverted-pair" ? count.count : 0;
    EXPECT_EQ(warned, p.reordered);
  }
  EXPECT_GT(reordered, 1000U) << "the stamps were hardly ever in the wrong order";
}

TEST_P(Inversions, BlocksOfOldDoNotMakeAFault) {
  // Where it is not known what was live, two inversions that follow each other at one address can have two meanings;
  // they are as rare here as in a real trace.
  uint64_t reordered = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    auto run = random_run(seed, 1500);
    run.erase(run.begin(), run.begin() + 700);  // recording began in the middle
    const Profile truth = read(trace_of(run, 0, GetParam(), false));
    const testing::Bytes stamped = trace_of(run, 40, GetParam(), false);
    const Profile p = read(stamped);
    EXPECT_EQ(p.double_births + p.unknown_frees, 0U);
    EXPECT_EQ(p.allocated.count, truth.allocated.count);
    EXPECT_EQ(p.freed.count, truth.freed.count);
    EXPECT_LE(p.live.count, truth.live.count + kAddresses);
    reordered += p.reordered;
    const auto report = validate_bytes(stamped, "t");
    ASSERT_TRUE(report.ok());
    EXPECT_TRUE(report.value().ok()) << report.value().findings.front().text();
  }
  EXPECT_GT(reordered, 50U);
}

INSTANTIATE_TEST_SUITE_P(Frequencies, Inversions, ::testing::Values(1'000'000'000, 3'100'000'007, 24'000'000));

TEST(InversionWithBlocksOfOld, ASecondBirthTellsThatTheFirstBlockHadDied) {
  TraceWriter trace;
  auto& gen = trace.generation(1);
  gen.process(1000, false).site(1, 0, Entry::k_malloc, 24);
  gen.free(2, 5000, 0x10010)       // stamped before the birth of its block, or the death of a block of old
      .alloc(1, 5300, 0x10010, 1)  // nothing of it before 90000: it was the former
      .alloc(1, 90'000, 0x10010, 1)
      .free(2, 105'000, 0x10020)  // that of a block of old,
      .alloc(1, 105'300, 0x10020, 1)
      .free(1, 110'000, 0x10020)  // for this one dies by itself
      .end_row(200'000);
  const Profile p = read(trace.bytes());
  EXPECT_EQ(p.double_births, 0U);
  EXPECT_EQ(p.reordered, 1U);
  EXPECT_EQ(p.frees_before, 1U);
  EXPECT_EQ(p.live.count, 1U);
  EXPECT_EQ(p.freed.bytes, 48U);
}

}  // namespace
}  // namespace traceaf::reader
