// The merged order of threads against the plain definition of it.
#include "reader/order.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "tests/support/trace_writer.h"

namespace traceaf::reader {
namespace {

struct Seen {
  uint64_t time, id;
  uint32_t slot;
  uint8_t type;
  bool operator==(const Seen&) const = default;
};

// Always the least of the threads' next events, by (time, rank, slot).
std::vector<Seen> expected_order(std::vector<std::vector<Seen>> threads) {
  std::vector<Seen> out;
  std::vector<size_t> next(threads.size());
  const auto key = [](const Seen& s) { return std::tuple(s.time, kTieRank[s.type], s.slot); };
  for (;;) {
    const Seen* least = nullptr;
    for (size_t i = 0; i < threads.size(); ++i) {
      if (next[i] == threads[i].size()) continue;
      const Seen& head = threads[i][next[i]];
      if (least == nullptr || key(head) < key(*least)) least = &head;
    }
    if (least == nullptr) return out;
    out.push_back(*least);
    ++next[least->slot];
  }
}

void check(uint64_t seed, size_t threads, size_t events, uint64_t spread, uint64_t run) {
  std::mt19937_64 random(seed);
  testing::TraceWriter trace;
  auto& gen = trace.generation(1);
  std::vector<std::vector<Seen>> all(threads);
  std::vector<uint64_t> time(threads, 2000);
  for (size_t i = 0; i < threads; ++i) gen.without_status(i + 1);
  size_t slot = 0;
  for (size_t i = 0; i < events; ++i) {
    if (random() % run == 0) slot = random() % threads;
    time[slot] += random() % spread;
    const auto type = static_cast<uint8_t>(static_cast<uint64_t>(wire::Ev::kHeapObject) + random() % 3);
    const uint64_t id = random() % 100'000;
    if (random() % 50 == 0) gen.next_batch(slot + 1);
    if (type == static_cast<uint8_t>(wire::Ev::kHeapObjectFree)) {
      gen.event(slot + 1, time[slot], static_cast<wire::Ev>(type), {id});
    } else {
      gen.event(slot + 1, time[slot], static_cast<wire::Ev>(type), {id, 7});
    }
    all[slot].push_back({time[slot], id, static_cast<uint32_t>(slot), type});
  }
  const auto bytes = trace.bytes();
  auto reader = TraceReader::from_bytes(bytes, {}, "t");
  ASSERT_TRUE(reader.ok());
  const Generation* const generation = reader.value()->next();
  ASSERT_NE(generation, nullptr);
  // A slot is the place of a thread among those that have events.
  std::vector<std::vector<Seen>> present;
  for (auto& thread : all) {
    if (thread.empty()) continue;
    for (auto& seen : thread) seen.slot = static_cast<uint32_t>(present.size());
    present.push_back(thread);
  }
  std::vector<Seen> order;
  std::multiset<uint64_t> announced;
  const auto fault = merge_cursors(
      *generation, [&](const Event& event) { announced.insert(event.args[0]); },
      [&](const ThreadCursor& cursor) {
        const auto it = announced.find(cursor.event().args[0]);
        ASSERT_NE(it, announced.end()) << "an event must be announced before its turn";
        announced.erase(it);
        order.push_back({cursor.time(), cursor.event().args[0], cursor.slot(), cursor.event().type});
      });
  EXPECT_FALSE(fault);
  EXPECT_TRUE(announced.empty());
  ASSERT_EQ(order, expected_order(present)) << threads << " threads, seed " << seed;
}

TEST(Order, IsThatOfTimeThenRankThenThread) {
  uint64_t seed = 0;
  for (const size_t threads : {1, 2, 3, 8, 33}) {
    for (const uint64_t spread : {2, 30, 2000}) {
      for (const uint64_t run : {1, 40, 400}) check(++seed, threads, 4000, spread, run);
    }
  }
}

TEST(Order, ManyThreadsWithFewEvents) { check(99, 700, 3000, 50, 2); }

}  // namespace
}  // namespace traceaf::reader
