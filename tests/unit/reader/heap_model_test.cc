// What the heap model makes of events: totals, peaks, temporaries, conservation, gaps.
#include <gtest/gtest.h>

#include "reader/read.h"
#include "tests/support/trace_writer.h"

namespace traceaf::reader {
namespace {

using testing::GenerationWriter;
using testing::TraceWriter;
using wire::Entry;
using wire::Ev;

constexpr uint64_t kA = 0x10010, kB = 0x10020, kC = 0x10030, kD = 0x10040;

Profile read(const TraceWriter& trace) {
  auto profile = read_profile_bytes(trace.bytes(), {}, "t");
  EXPECT_TRUE(profile.ok()) << profile.error().text();
  return profile.ok() ? std::move(profile.value()) : Profile();
}

// A generation with types 1 (24 bytes, malloc at node 8), 2 (100 bytes, malloc at node 9), 3 (200 bytes, realloc at
// node 8); recording began at time 1000.
GenerationWriter& begin(TraceWriter& trace, uint64_t number = 1, bool exact = true) {
  auto& gen = trace.generation(number);
  gen.process(1000, exact);
  gen.node(8, 1, 0, 0x400100).node(9, 8, 0, 0x400200);
  gen.site(1, 8, Entry::k_malloc, 24).site(2, 9, Entry::k_malloc, 100).site(3, 8, Entry::k_realloc, 200);
  return gen;
}

const Site* site(const Profile& profile, uint32_t node, Entry entry) {
  for (const auto& s : profile.sites) {
    const uint64_t offset = profile.nodes[s.node].offset;
    if (offset == (node == 8 ? 0x400100U : 0x400200U) && s.entry == static_cast<uint8_t>(entry)) return &s;
  }
  return nullptr;
}

TEST(HeapModel, CountsBirthsAndDeathsBySiteAndThread) {
  TraceWriter trace;
  begin(trace).alloc(1, 2000, kA, 1).alloc(1, 2100, kB, 2).free(2, 2500, kA).alloc(2, 2600, kC, 1).end_row(3000);
  const Profile p = read(trace);
  EXPECT_TRUE(p.ending.complete) << p.ending.note;
  EXPECT_EQ(p.events, 4U);
  EXPECT_EQ(p.allocated.count, 3U);
  EXPECT_EQ(p.allocated.bytes, 148U);
  EXPECT_EQ(p.freed.count, 1U);
  EXPECT_EQ(p.freed.bytes, 24U);
  EXPECT_EQ(p.live.count, 2U);
  EXPECT_EQ(p.live.bytes, 124U);
  EXPECT_EQ(p.duration_ns, 600U);
  ASSERT_NE(site(p, 8, Entry::k_malloc), nullptr);
  const Site& s = *site(p, 8, Entry::k_malloc);
  EXPECT_EQ(s.allocated.count, 2U);
  EXPECT_EQ(s.freed.count, 1U);
  EXPECT_EQ(s.live.bytes, 24U);
  EXPECT_EQ(s.first_birth_ns, 1000U);
  EXPECT_EQ(s.last_birth_ns, 1600U);
  EXPECT_EQ(s.lifetime_ns, 500U);
  ASSERT_EQ(p.threads.size(), 2U);
  EXPECT_EQ(p.threads[0].m, 1U);
  EXPECT_EQ(p.threads[0].allocated.count, 2U);
  EXPECT_EQ(p.threads[0].freed.count, 0U);
  EXPECT_EQ(p.threads[1].freed.bytes, 24U);
  EXPECT_EQ(p.threads[1].events, 2U);
  ASSERT_EQ(p.live_blocks.size(), 2U);
  EXPECT_EQ(p.live_blocks[0].address, kB);
  EXPECT_EQ(p.live_blocks[0].size, 100U);
  EXPECT_EQ(p.live_blocks[0].birth_ns, 1100U);
  EXPECT_EQ(p.live_blocks[1].m, 2U);
  EXPECT_EQ(p.process.command, (std::vector<std::string>{"app", "-x"}));
  EXPECT_EQ(p.nodes[p.sites[p.live_blocks[0].site].node].offset, 0x400200U);
}

TEST(HeapModel, PeakKeepsItsExactComposition) {
  TraceWriter trace;
  // Peak of 224 bytes: A (24, node 8) and D (200, node 8 realloc). B (100, node 9) is gone then and comes back later.
  begin(trace)
      .alloc(1, 2000, kB, 2)
      .alloc(1, 2001, kA, 1)
      .free(1, 2002, kB)
      .alloc(1, 2003, kD, 3)
      .free(1, 2004, kD)
      .alloc(1, 2005, kB, 2)
      .alloc(1, 2006, kC, 2)
      .end_row(3000);
  const Profile p = read(trace);
  EXPECT_EQ(p.peak.bytes, 224U);
  EXPECT_EQ(p.peak.count, 2U);
  EXPECT_EQ(p.peak_time_ns, 1003U);
  EXPECT_EQ(site(p, 8, Entry::k_malloc)->peak.bytes, 24U);
  EXPECT_EQ(site(p, 8, Entry::k_realloc)->peak.bytes, 200U);
  EXPECT_EQ(site(p, 9, Entry::k_malloc)->peak.bytes, 0U);
  EXPECT_EQ(p.live.bytes, 224U) << "the same height again is no new peak";
  uint64_t sum = 0;
  for (const auto& s : p.sites) sum += s.peak.bytes;
  EXPECT_EQ(sum, p.peak.bytes);
}

TEST(HeapModel, TemporaryIsByPointerAndThread) {
  TraceWriter trace;
  begin(trace)
      // Freed right after its birth: temporary.
      .alloc(1, 2000, kA, 1)
      .free(1, 2001, kA)
      // Another thread allocates in between: still temporary.
      .alloc(1, 2100, kA, 1)
      .alloc(2, 2101, kB, 1)
      .free(1, 2102, kA)
      // Freed by the other thread: not.
      .free(1, 2103, kB)
      // The previous block is freed after the next was born, over and over: never temporary.
      .alloc(1, 2200, kA, 1)
      .alloc(1, 2201, kB, 1)
      .free(1, 2202, kA)
      .alloc(1, 2203, kA, 1)
      .free(1, 2204, kB)
      .alloc(1, 2205, kC, 1)
      .free(1, 2206, kA)
      // Other frees in between do not matter: temporary.
      .alloc(1, 2300, kD, 1)
      .free(1, 2301, kC)
      .free(1, 2302, kD)
      .end_row(3000);
  const Profile p = read(trace);
  EXPECT_EQ(p.temporary.count, 3U);
  EXPECT_EQ(p.temporary.bytes, 72U);
  EXPECT_EQ(p.threads[0].temporary.count, 3U);
  EXPECT_EQ(p.threads[1].temporary.count, 0U);
  EXPECT_EQ(site(p, 8, Entry::k_malloc)->temporary.count, 3U);
}

TEST(HeapModel, MoveIsOneBirthAndOneDeath) {
  TraceWriter trace;
  begin(trace).alloc(1, 2000, kA, 1).alloc(1, 2001, kB, 1).free(1, 2002, kA).alloc(1, 2003, kA, 3).end_row(3000);
  const Profile p = read(trace);
  EXPECT_EQ(p.moves, 1U);
  EXPECT_EQ(p.allocated.count, 3U);
  EXPECT_EQ(p.freed.count, 1U);
  EXPECT_EQ(p.live.bytes, 224U);
  EXPECT_EQ(p.temporary.count, 0U);
}

TEST(HeapModel, DoubleBirthEndsTheOldBlock) {
  TraceWriter trace;
  begin(trace).alloc(1, 2000, kA, 1).alloc(1, 2001, kA, 2).free(1, 9000, kA).end_row(9999);
  const Profile p = read(trace);
  EXPECT_EQ(p.double_births, 1U);
  EXPECT_EQ(p.unknown_frees, 0U);
  EXPECT_EQ(p.live.count, 0U);
  EXPECT_EQ(p.live.bytes, 0U);
  EXPECT_EQ(p.freed.bytes, 100U);
}

TEST(HeapModel, UnknownFreesAreAFaultOnlyWhereTheLiveSetWasKnown) {
  TraceWriter exact;
  begin(exact).free(1, 2000, kA).end_row(3000);
  Profile p = read(exact);
  EXPECT_EQ(p.unknown_frees, 1U);
  EXPECT_EQ(p.frees_before, 0U);
  EXPECT_EQ(p.freed.count, 1U);
  EXPECT_EQ(p.freed.bytes, 0U);

  TraceWriter late;
  begin(late, 1, false).free(1, 2000, kA).end_row(3000);
  p = read(late);
  EXPECT_EQ(p.unknown_frees, 0U);
  EXPECT_EQ(p.frees_before, 1U);
  EXPECT_FALSE(p.process.live_exact);
}

TEST(HeapModel, EqualTimesAtOneAddressAlternate) {
  // Thread 2 frees A at the very time at which thread 1 gets it again.
  TraceWriter reuse;
  begin(reuse).alloc(2, 2000, kA, 1).alloc(1, 5000, kA, 2).free(2, 5000, kA).end_row(6000);
  Profile p = read(reuse);
  EXPECT_EQ(p.double_births + p.unknown_frees + p.reordered, 0U);
  EXPECT_EQ(p.live.bytes, 100U);

  // Thread 1 is born A, thread 2 frees it, all at one time: the death is the new block's.
  TraceWriter handed;
  begin(handed).alloc(1, 5000, kA, 2).free(2, 5000, kA).end_row(9000);
  p = read(handed);
  EXPECT_EQ(p.double_births + p.unknown_frees, 0U);
  EXPECT_EQ(p.reordered, 1U);
  EXPECT_EQ(p.live.count, 0U);
  EXPECT_EQ(p.peak.bytes, 100U);

  // The death waits behind another birth of its thread, so the birth of the new block comes first.
  TraceWriter behind;
  begin(behind).alloc(2, 2000, kA, 1).alloc(1, 5000, kA, 2).alloc(2, 5000, kB, 1).free(2, 5000, kA).end_row(9000);
  p = read(behind);
  EXPECT_EQ(p.double_births + p.unknown_frees, 0U);
  EXPECT_EQ(p.reordered, 1U);
  EXPECT_EQ(p.live.bytes, 124U);
  EXPECT_EQ(p.freed.bytes, 24U);
}

TEST(HeapModel, SmallInversionsOfTwoClocksArePutRight) {
  TraceWriter trace;
  begin(trace)
      .alloc(2, 2000, kA, 1)
      .alloc(1, 5000, kA, 2)  // stamped 300 ns before the death that made room
      .free(2, 5300, kA)
      .alloc(1, 9000, kB, 1)
      .alloc(1, 9100, kB, 1)  // two births of one thread: no clock explains that
      .free(2, 19000, kB)
      .end_row(30000);
  const Profile p = read(trace);
  EXPECT_EQ(p.reordered, 1U);
  EXPECT_EQ(p.double_births, 1U);
  EXPECT_EQ(p.live.bytes, 100U);
}

TEST(HeapModel, LateDeathAfterADoubleBirthIsTheNewBlocks) {
  TraceWriter trace;
  begin(trace).alloc(2, 2000, kA, 1).alloc(1, 5000, kA, 2).free(2, 9001, kA).end_row(12000);
  const Profile p = read(trace);
  EXPECT_EQ(p.reordered, 0U);
  EXPECT_EQ(p.double_births, 1U);
  EXPECT_EQ(p.freed.bytes, 100U);
  EXPECT_EQ(p.live.count, 0U);
}

TEST(HeapModel, GapWithoutSnapshotForgetsWhatWasLive) {
  TraceWriter trace;
  begin(trace).alloc(1, 2000, kA, 1).alloc(1, 2001, kB, 2).marker(2100, wire::MarkerKind::kOff);
  begin(trace, 2, false).marker(5000, wire::MarkerKind::kOn).free(1, 5100, kA).alloc(1, 5200, kB, 1).end_row(6000);
  const Profile p = read(trace);
  EXPECT_EQ(p.frees_before, 1U);
  EXPECT_EQ(p.unknown_frees, 0U);
  EXPECT_EQ(p.double_births, 0U);
  EXPECT_EQ(p.live.count, 1U);
  EXPECT_EQ(p.live.bytes, 24U);
  EXPECT_EQ(p.peak.bytes, 124U);
}

TEST(HeapModel, GapWithSnapshotKeepsTheBirthsOfKnownBlocks) {
  TraceWriter trace;
  begin(trace).alloc(1, 2000, kA, 1).alloc(1, 2001, kB, 2).marker(2100, wire::MarkerKind::kStandby);
  auto& gen = begin(trace, 2, true);
  gen.marker(5000, wire::MarkerKind::kOn).site(4, 0, Entry::k_inherited, 48);
  gen.exists(1, 5000, kA, 1).exists(1, 5000, kC, 4).free(1, 5100, kA).free(1, 5200, kC).free(1, 5300, kB).end_row(6000);
  const Profile p = read(trace);
  EXPECT_EQ(p.inherited.count, 1U);
  EXPECT_EQ(p.inherited.bytes, 48U);
  EXPECT_EQ(p.unknown_frees, 1U) << "B was not in the snapshot";
  EXPECT_EQ(p.live.count, 0U);
  EXPECT_EQ(site(p, 8, Entry::k_malloc)->lifetime_ns, 3100U);
}

TEST(HeapModel, TypesRestartInEachGeneration) {
  TraceWriter trace;
  begin(trace).alloc(1, 2000, kA, 1).alloc(1, 2001, kB, 2);
  auto& gen = trace.generation(2, 3000);
  gen.site(1, 9, Entry::k_malloc, 100).site(2, 8, Entry::k_malloc, 24);
  gen.alloc(1, 3000, kC, 1).alloc(1, 3001, kD, 2).end_row(4000);
  const Profile p = read(trace);
  EXPECT_EQ(p.sites.size(), 2U);
  EXPECT_EQ(site(p, 8, Entry::k_malloc)->live.bytes, 48U);
  EXPECT_EQ(site(p, 9, Entry::k_malloc)->live.bytes, 200U);
}

TEST(HeapModel, UnknownTypesAndTypesWithoutASiteAreToldApart) {
  TraceWriter trace;
  begin(trace).type(77, 0x400000, 640, "T").alloc(1, 2000, kA, 77).alloc(1, 2001, kB, 99).end_row(3000);
  const Profile p = read(trace);
  EXPECT_EQ(p.unknown_types, 1U);
  EXPECT_EQ(p.live.bytes, 640U);
  EXPECT_EQ(p.live.count, 2U);
  ASSERT_EQ(p.sites.size(), 1U);
  EXPECT_EQ(p.sites[0].node, 0U);
  EXPECT_EQ(p.sites[0].entry, 0U);
}

TEST(HeapModel, IdsBelowTheMinimumAddressWrap) {
  TraceWriter trace;
  begin(trace).alloc(1, 2000, 0x8008, 1).span(Ev::kSpanAlloc, 1, 2001, 0x8000).end_row(3000);
  const Profile p = read(trace);
  ASSERT_EQ(p.live_blocks.size(), 1U);
  EXPECT_EQ(p.live_blocks[0].address, 0x8008U) << "ids and addresses are modulo 2^64";
  ASSERT_EQ(p.spans.size(), 1U);
  EXPECT_EQ(p.spans[0].base, 0x8000U);
}

TEST(HeapModel, HistogramsBySizeAndLifetime) {
  TraceWriter trace;
  auto& gen = begin(trace).site(4, 8, Entry::k_calloc, 0);
  gen.alloc(1, 2000, kA, 1).free(1, 2005, kA).alloc(1, 2100, kB, 4).free(1, 2100, kB).end_row(3000);
  const Profile p = read(trace);
  EXPECT_EQ(p.sizes[5].count, 1U) << "24 bytes lie in [16, 32)";
  EXPECT_EQ(p.sizes[0].count, 1U);
  EXPECT_EQ(p.lifetimes[3].count, 1U) << "5 ns lie in [4, 8)";
  EXPECT_EQ(p.lifetimes[0].count, 1U);
}

TEST(HeapModel, SpansKnowTheirLiveObjects) {
  TraceWriter trace;
  auto& gen = begin(trace);
  gen.row(1, wire::Row::kSpanInfo, {1, static_cast<uint64_t>(wire::SpanSource::kSlab), 1, 24});
  gen.span(Ev::kSpanAlloc, 1, 1500, 0x10000, 4)
      .span(Ev::kSpanAlloc, 1, 1501, 0x11000, 1, 6)
      .span(Ev::kSpanAlloc, 1, 1502, 0x20000, 2)
      .span(Ev::kSpanFree, 1, 1503, 0x20000)
      .alloc(1, 2000, 0x10010, 1)
      .alloc(1, 2001, 0x11010, 1)
      .alloc(1, 2002, 0x12010, 2)
      .alloc(1, 2003, 0x20010, 1)
      .stack(Ev::kGoroutineStackAlloc, 1, 2004, 0x30000)
      .stack(Ev::kGoroutineStackFree, 1, 2005, 0x30000)
      .end_row(3000);
  const Profile p = read(trace);
  ASSERT_EQ(p.spans.size(), 2U);
  EXPECT_EQ(p.spans[0].live.count, 2U);
  EXPECT_EQ(p.spans[0].live.bytes, 124U);
  EXPECT_EQ(p.spans[1].live.count, 1U) << "the innermost span counts";
  EXPECT_EQ(p.spans[1].source, wire::SpanSource::kSlab);
  EXPECT_TRUE(p.spans[1].inferred);
  EXPECT_EQ(p.spans[1].object_size, 24U);
  EXPECT_EQ(p.spans[1].kind_class, 6U);
  EXPECT_EQ(p.spans_peak.count, 3U);
  EXPECT_EQ(p.spans_peak.bytes, 7 * 4096U);
  EXPECT_EQ(p.span_allocs, 3U);
  EXPECT_EQ(p.span_frees, 1U);
  EXPECT_EQ(p.stacks_born, 1U);
  EXPECT_EQ(p.stacks_freed, 1U);
}

TEST(HeapModel, AGuessedNodeSaysSoAndARowWithoutFlagsDoesNot) {
  TraceWriter trace;
  auto& gen = trace.generation(1);
  gen.process(1000, true);
  gen.node(8, 1, 0, 0x400100).row(1, wire::Row::kNode, {9, 8, 0, 0x400200, wire::kNodeGuessed});
  gen.row(1, wire::Row::kNode, {10, 9, 0, 0x400300, 2}).node(11, 9, 0, 0x400400);  // a flag of the future
  gen.site(1, 11, Entry::k_malloc, 24).alloc(1, 2000, kA, 1).end_row(3000);
  const Profile p = read(trace);
  ASSERT_EQ(p.nodes.size(), wire::kFirstNode + 4);
  for (const Node& node : p.nodes) EXPECT_EQ(node.guessed, node.offset == 0x400200) << node.offset;
}

TEST(HeapModel, CyclesOfNodesAreCut) {
  TraceWriter trace;
  auto& gen = begin(trace);
  gen.node(20, 21, 0, 0x1).node(21, 22, 0, 0x2).node(22, 20, 0, 0x3).node(30, 30, 0, 0x4);
  gen.site(5, 22, Entry::k_malloc, 8).alloc(1, 2000, kA, 5).end_row(3000);
  const Profile p = read(trace);
  for (uint32_t i = 0; i < p.nodes.size(); ++i) {
    uint32_t at = i;
    size_t steps = 0;
    while (at >= wire::kFirstNode && steps <= p.nodes.size()) {
      at = p.nodes[at].parent;
      ++steps;
    }
    EXPECT_LE(steps, p.nodes.size()) << "node " << i;
  }
}

TEST(HeapModel, TimelineHasThePeakAndStaysSmall) {
  TraceWriter trace;
  auto& gen = begin(trace);
  for (uint64_t i = 0; i < 20000; ++i) {
    gen.alloc(1, 2000 + i * 5000, kA, 1);
    if (i == 12345) gen.alloc(1, 2000 + i * 5000 + 1, kB, 3).free(1, 2000 + i * 5000 + 2, kB);
    gen.free(1, 2000 + i * 5000 + 1000, kA);
  }
  gen.end_row(200'000'000);
  const Profile p = read(trace);
  EXPECT_LE(p.timeline.size(), 2048U);
  EXPECT_GT(p.timeline.size(), 512U);
  uint64_t highest = 0;
  for (size_t i = 0; i < p.timeline.size(); ++i) {
    highest = std::max(highest, p.timeline[i].live_bytes);
    if (i != 0) {
      EXPECT_LT(p.timeline[i - 1].time_ns, p.timeline[i].time_ns);
      EXPECT_LE(p.timeline[i - 1].allocations, p.timeline[i].allocations);
    }
  }
  EXPECT_EQ(highest, p.peak.bytes);
  EXPECT_EQ(p.timeline.back().allocations, p.allocated.count);
  EXPECT_EQ(p.timeline.back().live_bytes, 0U);
}

TEST(HeapModel, LastCountersWinAndRssReachesTheTimeline) {
  TraceWriter trace;
  begin(trace)
      .alloc(1, 2000, kA, 1)
      .counters(2100, {{wire::Counter::k_lost_events, 1}, {wire::Counter::k_rss_bytes, 8192}})
      .counters(2500, {{wire::Counter::k_lost_events, 3}})
      .end_row(3000);
  const Profile p = read(trace);
  EXPECT_EQ(p.counters[static_cast<size_t>(wire::Counter::k_lost_events)], 3U);
  ASSERT_FALSE(p.timeline.empty());
  EXPECT_EQ(p.timeline.back().rss_bytes, 8192U);
}

}  // namespace
}  // namespace traceaf::reader
