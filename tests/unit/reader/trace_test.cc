// Framing, generations, order and the parser API.
#include "reader/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "reader/order.h"
#include "reader/read.h"
#include "tests/support/trace_writer.h"

namespace traceaf::reader {
namespace {

using testing::Bytes;
using testing::TraceWriter;
using wire::Entry;
using wire::Ev;

constexpr uint64_t kA = 0x10010, kB = 0x10020, kC = 0x10030;

std::unique_ptr<TraceReader> open(const Bytes& bytes) {
  auto reader = TraceReader::from_bytes(bytes, {}, "t");
  EXPECT_TRUE(reader.ok()) << (reader.ok() ? "" : reader.error().text());
  return reader.ok() ? std::move(reader.value()) : nullptr;
}

// The text of the fault behind all generations.
std::string fault_of(const Bytes& bytes, size_t* generations = nullptr) {
  auto reader = open(bytes);
  size_t n = 0;
  while (const Generation* gen = reader->next()) n += gen->complete ? 1 : 0;
  if (generations != nullptr) *generations = n;
  return reader->fault() ? reader->fault()->text() : "";
}

TEST(Trace, ExperimentalEventsComeWithNamesAndInOrder) {
  TraceWriter trace;
  auto& gen = trace.generation(7);
  gen.alloc(2, 5000, kA, 3).free(2, 7000, kA).alloc(1, 6000, kB, 4).span(Ev::kSpanAlloc, 1, 8000, 0x11000, 2);
  auto reader = open(trace.bytes());
  const Generation* g = reader->next();
  ASSERT_NE(g, nullptr);
  EXPECT_EQ(g->number, 7U);
  EXPECT_TRUE(g->complete);
  EXPECT_EQ(g->sync.frequency, 1'000'000'000U);
  EXPECT_EQ(g->info.object_address(2), 0x10010U);
  std::vector<std::string> seen;
  EXPECT_FALSE(for_each_experimental_event(*g, [&](const ExperimentalEvent& e) {
    std::string line = std::to_string(e.time) + " m" + std::to_string(e.m) + " " + std::string(e.name);
    for (size_t i = 0; i < e.argument_names.size(); ++i) {
      line += " " + std::string(e.argument_names[i]) + "=" + std::to_string(e.arguments[i]);
    }
    seen.push_back(line);
  }));
  EXPECT_EQ(seen, (std::vector<std::string>{
                      "5000 m2 HeapObjectAlloc object_id=2 type_id=3", "6000 m1 HeapObjectAlloc object_id=4 type_id=4",
                      "7000 m2 HeapObjectFree object_id=2", "8000 m1 SpanAlloc span_id=1 npages=2 kind_class=1"}));
  EXPECT_EQ(reader->next(), nullptr);
  EXPECT_FALSE(reader->fault());
}

TEST(Trace, ExperimentalDataIsHandedOutAsBytes) {
  TraceWriter trace;
  trace.generation(1).type(5, 0x400, 24, "widget").raw(testing::experimental_batch(1, 9, 1500, {77, 1, 2, 3}));
  auto reader = open(trace.bytes());
  const Generation* g = reader->next();
  ASSERT_NE(g, nullptr);
  const auto data =
      std::find_if(g->experimental.begin(), g->experimental.end(), [](const auto& d) { return d.kind == 77; });
  ASSERT_NE(data, g->experimental.end());
  EXPECT_EQ(Bytes(data->bytes.begin(), data->bytes.end()), (Bytes{1, 2, 3}));
  EXPECT_EQ(data->m, 9U);
  EXPECT_EQ(data->time, 1500U);
  EXPECT_EQ(trace.bytes()[data->offset], 1);
  size_t types = 0;
  EXPECT_FALSE(for_each_type(*g, [&](const TypeEntry& type) {
    ++types;
    EXPECT_EQ(type.id, 5U);
    EXPECT_EQ(type.address, 0x400U);
    EXPECT_EQ(type.size, 24U);
    EXPECT_EQ(type.name, "widget");
  }));
  EXPECT_EQ(types, 1U);
}

TEST(Trace, TiesAreBrokenByExistingDyingBorn) {
  TraceWriter trace;
  auto& gen = trace.generation(1);
  gen.without_status(1).without_status(2).without_status(3);
  gen.alloc(1, 5000, kA, 1).free(2, 5000, kB).exists(3, 5000, kC, 1);
  auto reader = open(trace.bytes());
  std::vector<Ev> order;
  ASSERT_FALSE(
      for_each_experimental_event(*reader->next(), [&](const auto& e) { order.push_back(static_cast<Ev>(e.type)); }));
  EXPECT_EQ(order, (std::vector<Ev>{Ev::kHeapObject, Ev::kHeapObjectFree, Ev::kHeapObjectAlloc}));
}

TEST(Trace, OrderOfAThreadIsKeptEvenWhereItsBatchesGoBackInTime) {
  TraceWriter trace;
  auto& gen = trace.generation(1);
  gen.without_status(1).without_status(2);
  gen.alloc(1, 5000, kA, 1).next_batch(1).alloc(1, 4000, kB, 1).alloc(2, 4500, kC, 1);
  auto reader = open(trace.bytes());
  std::vector<uint64_t> order;
  ASSERT_FALSE(
      for_each_experimental_event(*reader->next(), [&](const auto& e) { order.push_back(e.time * 10 + e.m); }));
  EXPECT_EQ(order, (std::vector<uint64_t>{45002, 50001, 50001}));
}

TEST(Trace, MergeEqualsASortOfManyThreads) {
  TraceWriter trace;
  auto& gen = trace.generation(1);
  std::mt19937_64 random(5);
  std::vector<std::pair<uint64_t, uint64_t>> expected;  // time, m
  std::vector<uint64_t> now(38, 2000);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t m = 1 + random() % 37;
    now[m] += random() % 3 == 0 ? 0 : random() % 1000;
    gen.without_status(m).alloc(m, now[m], kA + 8 * static_cast<uint64_t>(i), 1);
    expected.emplace_back(now[m], m);
  }
  std::stable_sort(expected.begin(), expected.end());
  auto reader = open(trace.bytes());
  std::vector<std::pair<uint64_t, uint64_t>> seen;
  ASSERT_FALSE(for_each_experimental_event(*reader->next(), [&](const auto& e) { seen.emplace_back(e.time, e.m); }));
  EXPECT_EQ(seen, expected);
}

TEST(Trace, BatchesOfThreadsMayComeInAnyOrder) {
  // The same batches, permuted except within one thread, must give the same profile.
  const auto build = [](bool reversed) {
    TraceWriter trace;
    auto& gen = trace.generation(1);
    gen.process(0)
        .node(8, 1, 0, 0x111)
        .node(9, 1, 0, 0x222)
        .site(1, 8, Entry::k_malloc, 16)
        .site(2, 9, Entry::k_calloc, 32);
    const std::vector<uint64_t> ms = reversed ? std::vector<uint64_t>{3, 2, 1} : std::vector<uint64_t>{1, 2, 3};
    for (const uint64_t m : ms) {
      gen.thread(m, 100 + m, 1000, 0, "t");
      gen.without_status(m);
      for (uint64_t i = 0; i < 50; ++i) gen.alloc(m, 2000 + i * 7 * m, 0x20000 * m + 16 * i, 1 + (i + m) % 2);
    }
    gen.end_row(9000);
    return trace.bytes();
  };
  const auto a = read_profile_bytes(build(false), {}, "a");
  const auto b = read_profile_bytes(build(true), {}, "b");
  ASSERT_TRUE(a.ok() && b.ok());
  const Profile& p = a.value();
  const Profile& q = b.value();
  ASSERT_EQ(p.sites.size(), q.sites.size());
  for (size_t i = 0; i < p.sites.size(); ++i) {
    EXPECT_EQ(p.sites[i].node, q.sites[i].node);
    EXPECT_EQ(p.sites[i].peak.bytes, q.sites[i].peak.bytes);
  }
  ASSERT_EQ(p.live_blocks.size(), 150U);
  for (size_t i = 0; i < p.live_blocks.size(); ++i) {
    EXPECT_EQ(p.live_blocks[i].address, q.live_blocks[i].address);
    EXPECT_EQ(p.live_blocks[i].site, q.live_blocks[i].site);
    EXPECT_EQ(p.live_blocks[i].m, q.live_blocks[i].m);
  }
  EXPECT_EQ(p.threads.size(), q.threads.size());
}

TEST(Trace, FaultsInTheFramingSayWhatWasExpected) {
  const auto with = [](const Bytes& bad) {
    TraceWriter trace;
    trace.generation(1).alloc(1, 2000, kA, 1);
    trace.generation(2, 3000).raw(bad);
    return trace.bytes();
  };
  const auto faults = [&](const Bytes& bad, const std::string& expected) {
    size_t whole = 0;
    const std::string fault = fault_of(with(bad), &whole);
    EXPECT_NE(fault.find(expected), std::string::npos) << fault;
    EXPECT_NE(fault.find("offset "), std::string::npos) << fault;
    EXPECT_EQ(whole, 1U) << "the generation before is delivered: " << fault;
  };
  faults({60}, "found event 60");
  faults({200}, "found event 200");
  faults(testing::batch(0, 1, 2000, {}), "expected a generation number from 1, found 0");
  faults(testing::batch(3, 1, 2000, {}), "found a batch of generation 3");
  faults(testing::batch(2, 1, 2000, Bytes(65537)), "expected a batch of at most 65536 bytes, found 65537");
  faults({1, 2, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1}, "at most 64 bits");
  faults({49, 0, 2, 1, 1, 0}, "expected an experiment id from 1");
  const uint8_t second_sync[] = {50, 8, 1, 51, 0, 1, 1, 1};
  faults(testing::batch(2, wire::kNoThread, 1, Bytes(std::begin(second_sync), std::end(second_sync))),
         "found a second");
}

TEST(Trace, GenerationsMustRise) {
  TraceWriter trace;
  trace.generation(5).alloc(1, 2000, kA, 1);
  trace.generation(9, 3000).alloc(1, 4000, kB, 1);
  trace.generation(3, 5000).alloc(1, 6000, kC, 1);
  size_t whole = 0;
  EXPECT_NE(fault_of(trace.bytes(), &whole).find("expected a generation above 9, found 3"), std::string::npos);
  EXPECT_EQ(whole, 2U);
}

TEST(Trace, GenerationWithoutSyncIsNotUsed) {
  TraceWriter trace;
  trace.generation(1).alloc(1, 2000, kA, 1);
  trace.generation(2, 3000, true).alloc(1, 4000, kB, 1);
  size_t whole = 0;
  EXPECT_NE(fault_of(trace.bytes(), &whole).find("expected a Sync batch in generation 2, found none"),
            std::string::npos);
  EXPECT_EQ(whole, 1U);
}

TEST(Trace, MalformedEventsEndTheirBatchAndAreReported) {
  const auto note = [](const Bytes& body, uint64_t m = 1) {
    TraceWriter trace;
    auto& gen = trace.generation(1);
    gen.process(0).site(1, 0, Entry::k_malloc, 8);
    Bytes whole = testing::event(Ev::kHeapObjectAlloc, 0, {2, 1});
    if (m == wire::kNoThread) whole = testing::event(Ev::kGoStatus, 0, {1, 1, 3});
    whole.insert(whole.end(), body.begin(), body.end());
    gen.raw(testing::batch(1, m, 2000, whole)).end_row(3000);
    auto profile = read_profile_bytes(trace.bytes(), {}, "t");
    EXPECT_TRUE(profile.ok());
    EXPECT_FALSE(profile.value().ending.complete);
    EXPECT_EQ(profile.value().allocated.count, m == wire::kNoThread ? 0U : 1U);
    return profile.value().ending.note;
  };
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find("offset"), std::string::npos) << text;
  };
  has(note({60, 0}), "found invalid event type 60");
  has(note({137, 0}), "found invalid event type 137");
  has(note({50}), "expected a timed event, found Sync");
  has(note({132, 0, 1}), "found the end of the batch");
  has(note({132, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 1}), "at most 64 bits");
  has(note(testing::event(Ev::kHeapObjectFree, ~uint64_t{0}, {1})), "expected a timestamp of at most 64 bits");
  has(note(testing::event(Ev::kHeapObjectFree, 0, {1}), wire::kNoThread), "found a batch of none");
}

TEST(Trace, LargestValuesPass) {
  TraceWriter trace;
  auto& gen = trace.generation(1);
  const uint64_t top = ~uint64_t{0};
  gen.process(0).row(1, wire::Row::kSite, {top, 0, 1, 0, top}).type(top, top, top, "t");
  gen.without_status(top - 1);
  gen.event(top - 1, top - 1, Ev::kHeapObjectAlloc, {top, top}).event(top - 1, top, Ev::kHeapObjectFree, {top});
  gen.end_row(top);
  auto profile = read_profile_bytes(trace.bytes(), {}, "t");
  ASSERT_TRUE(profile.ok());
  EXPECT_TRUE(profile.value().ending.complete) << profile.value().ending.note;
  EXPECT_EQ(profile.value().allocated.bytes, top);
  EXPECT_EQ(profile.value().peak.bytes, top);
  EXPECT_EQ(profile.value().live.count, 0U);
  EXPECT_EQ(profile.value().unknown_types, 0U);
}

TEST(Trace, CutAtEveryByteKeepsTheWholeGenerationsBefore) {
  TraceWriter trace;
  std::vector<size_t> ends;
  size_t at = sizeof wire::kHeader;
  for (uint64_t g = 1; g <= 3; ++g) {
    auto& gen = trace.generation(g, 1000 * g);
    gen.process(0)
        .site(1, 0, Entry::k_malloc, 8)
        .alloc(1, 1000 * g + 1, kA + 16 * g, 1)
        .free(1, 1000 * g + 2, kA + 16 * g);
    gen.alloc(1, 1000 * g + 3, kA + 16 * g, 1);
    if (g == 3) gen.end_row(4000);
    at += gen.bytes().size();
    ends.push_back(at);
  }
  const Bytes bytes = trace.bytes();
  ASSERT_EQ(bytes.size(), ends.back());
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const Bytes part(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(cut));
    auto result = read_profile_bytes(part, {}, "t");
    if (cut < sizeof wire::kHeader) {
      ASSERT_FALSE(result.ok()) << cut;
      continue;
    }
    const auto whole =
        static_cast<size_t>(std::count_if(ends.begin(), ends.end(), [&](size_t end) { return end <= cut; }));
    if (!result.ok()) {
      ASSERT_EQ(whole, 0U) << cut << ": " << result.error().text();
      continue;
    }
    const Profile& p = result.value();
    ASSERT_EQ(p.ending.complete, cut == bytes.size()) << cut << ": " << p.ending.note;
    ASSERT_EQ(p.ending.note.empty(), p.ending.complete) << cut;
    ASSERT_GE(p.generations.size(), whole) << cut;
    ASSERT_LE(p.generations.size(), whole + 1) << cut;
    ASSERT_GE(p.events, 3 * whole) << cut;
    const size_t begin = whole == 0 ? sizeof wire::kHeader : ends[whole - 1];
    const bool at_border = cut == begin;
    if (!at_border) {
      ASSERT_NE(p.ending.note.find("offset"), std::string::npos) << cut << p.ending.note;
    }
    ASSERT_LE(p.ending.lost_bytes, cut - begin) << cut;
  }
}

TEST(Trace, CompressedTraceCutAtEveryByteNeverFailsWorseThanPlain) {
  TraceWriter trace;
  for (uint64_t g = 1; g <= 2; ++g) {
    trace.generation(g, 1000 * g).process(0).site(1, 0, Entry::k_malloc, 8).alloc(1, 1000 * g + 1, kA + 16 * g, 1);
  }
  const Bytes bytes = trace.compressed();
  uint64_t best = 0;
  for (size_t cut = 1; cut <= bytes.size(); ++cut) {
    auto result = read_profile_bytes({bytes.data(), cut}, {}, "t");
    if (!result.ok()) continue;
    ASSERT_GE(result.value().events, best) << "at " << cut;
    best = result.value().events;
    if (cut != bytes.size()) {
      ASSERT_FALSE(result.value().ending.complete) << cut;
    }
  }
  EXPECT_EQ(best, 2U);
}

TEST(TimeScale, IsExactAndMonotone) {
  EXPECT_EQ(TimeScale(1'000'000'000).ns(123456789012345678U), 123456789012345678U);
  EXPECT_EQ(TimeScale(15'625'000).ns(10), 640U);
  EXPECT_EQ(TimeScale(3'000'000'000).ns(3), 1U);
  EXPECT_EQ(TimeScale(3'000'000'000).ns(uint64_t{3'000'000'000} * 86400), 86'400'000'000'000U);
  EXPECT_EQ(TimeScale(2'893'437'000).ns(2'893'437'000), 1'000'000'000U);
  EXPECT_EQ(TimeScale(1).ns(5), 5'000'000'000U);
  uint64_t last = 0;
  const TimeScale scale(2'893'437'123);
  for (uint64_t t = 0; t < 100'000; t += 7) {
    EXPECT_GE(scale.ns(t), last);
    last = scale.ns(t);
  }
}

TEST(TraceReader, EndlessEmptyBatchesEndTheTrace) {
  TraceWriter trace;
  auto& gen = trace.generation(1);
  testing::Bytes empty;
  for (int i = 0; i < (1 << 20) + 5; ++i) empty.insert(empty.end(), {1, 1, 7, 5, 0});  // gen 1, m 7, time 5, size 0
  gen.raw(empty);
  const auto bytes = trace.bytes();
  auto reader = TraceReader::from_bytes(bytes, {}, "t");
  ASSERT_TRUE(reader.ok());
  const Generation* const generation = reader.value()->next();
  ASSERT_NE(generation, nullptr);
  EXPECT_EQ(generation->batches.size(), 1U << 20);
  EXPECT_FALSE(generation->complete);
  EXPECT_EQ(reader.value()->next(), nullptr);
  ASSERT_TRUE(reader.value()->fault());
  EXPECT_NE(reader.value()->fault()->text().find("at most 1048576 batches"), std::string::npos);
}

}  // namespace
}  // namespace traceaf::reader
