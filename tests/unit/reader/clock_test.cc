// Clocks of any frequency: every time of a profile is ns, whatever a timestamp unit is.
#include <gtest/gtest.h>

#include "reader/read.h"
#include "tests/support/trace_writer.h"

namespace traceaf::reader {
namespace {

using testing::GenerationWriter;
using testing::TraceWriter;
using wire::Entry;
using wire::Ev;

constexpr uint64_t kA = 0x10010, kB = 0x10020;
constexpr uint64_t kGigahertz5 = 2'500'000'000;  // 2.5 units a ns
constexpr uint64_t kStart = 5'000'000;

Profile read(const TraceWriter& trace, const testing::Bytes& tail = {}) {
  auto profile = read_profile_bytes(trace.bytes(), tail, "t");
  EXPECT_TRUE(profile.ok()) << profile.error().text();
  return profile.ok() ? std::move(profile.value()) : Profile();
}

// A Sync whose snapshot says that `time` was `mono_ns`.
testing::Bytes sync(uint64_t gen, uint64_t time, uint64_t frequency, uint64_t mono_ns) {
  testing::Bytes body{static_cast<uint8_t>(Ev::kSync), static_cast<uint8_t>(Ev::kFrequency)};
  testing::put(body, frequency);
  const auto snapshot = testing::event(Ev::kClockSnapshot, 0, {mono_ns, 1'700'000'000, 0});
  body.insert(body.end(), snapshot.begin(), snapshot.end());
  return testing::batch(gen, wire::kNoThread, time, body);
}

GenerationWriter& begin(TraceWriter& trace, uint64_t number, uint64_t time, uint64_t frequency, uint64_t mono_ns) {
  auto& gen = trace.generation(number, time, true);
  gen.raw(sync(number, time, frequency, mono_ns)).info().process(kStart);
  return gen.site(1, 0, Entry::k_malloc, 24).site(2, 0, Entry::k_calloc, 100);
}

TEST(Clock, EveryTimeIsInNanoseconds) {
  TraceWriter trace;
  begin(trace, 1, kStart, kGigahertz5, 70'000)
      .thread(1, 100, kStart + 250, 0, "t")
      .alloc(1, kStart + 2'500, kA, 1)
      .alloc(1, kStart + 5'000, kB, 2)
      .free(1, kStart + 30'000, kB)
      .counters(kStart + 25'000, {{wire::Counter::k_rss_bytes, 8192}})
      .free(1, kStart + 2'500'000, kA)
      .end_row(kStart + 2'600'000);
  const Profile p = read(trace);
  EXPECT_TRUE(p.ending.complete) << p.ending.note;
  EXPECT_EQ(p.clock_freq, kGigahertz5);
  EXPECT_EQ(p.peak_time_ns, 2'000U);
  EXPECT_EQ(p.duration_ns, 999'000U) << "from the first event to the last";
  ASSERT_EQ(p.threads.size(), 1U);
  EXPECT_EQ(p.threads[0].birth_ns, 100U);
  ASSERT_EQ(p.generations.size(), 1U);
  EXPECT_EQ(p.generations[0].first_ns, 1'000U);
  EXPECT_EQ(p.generations[0].last_ns, 1'000'000U);
  uint64_t lifetimes = 0;
  for (const auto& site : p.sites) lifetimes += site.lifetime_ns;
  EXPECT_EQ(lifetimes, 10'000U + 999'000U);
  EXPECT_EQ(p.lifetimes[14].count, 1U) << "10000 ns lie in [8192, 16384)";
  uint64_t rss_at = 0;
  for (const auto& point : p.timeline) rss_at = point.rss_bytes != 0 ? point.time_ns : rss_at;
  EXPECT_EQ(rss_at, 12'000U) << "sampled at 10000 ns; there are points at 2000 and 12000";
}

TEST(Clock, TheWindowOfInversionsIsInNanoseconds) {
  TraceWriter inside;
  begin(inside, 1, kStart, kGigahertz5, 0)
      .alloc(2, kStart + 2'500, kA, 1)
      .alloc(1, kStart + 50'000, kA, 2)
      .free(2, kStart + 50'000 + 9'900, kA)  // 3960 ns later
      .end_row(kStart + 900'000);
  Profile p = read(inside);
  EXPECT_EQ(p.reordered, 1U);
  EXPECT_EQ(p.live.bytes, 100U);

  TraceWriter outside;
  begin(outside, 1, kStart, kGigahertz5, 0)
      .alloc(2, kStart + 2'500, kA, 1)
      .alloc(1, kStart + 50'000, kA, 2)
      .free(2, kStart + 50'000 + 10'100, kA)  // 4040 ns later
      .end_row(kStart + 900'000);
  p = read(outside);
  EXPECT_EQ(p.reordered, 0U);
  EXPECT_EQ(p.double_births, 1U);
  EXPECT_EQ(p.live.bytes, 0U);
}

TEST(Clock, ABetterMeasuredFrequencyMovesNothing) {
  TraceWriter trace;
  begin(trace, 1, kStart, 3'000'000'000, 1'000).alloc(1, kStart + 3'000, kA, 1);
  // A second later by the monotonic clock: the clock ran 0.1 % slower than was thought.
  const uint64_t later = kStart + 2'997'000'000;
  begin(trace, 2, later, 2'997'000'000, 1'000'001'000)
      .free(1, later - 2'997, kA)  // an event may lie before the Sync of its generation
      .alloc(1, later + 2'997, kB, 2)
      .end_row(later + 9'000);
  const Profile p = read(trace);
  ASSERT_EQ(p.generations.size(), 2U);
  EXPECT_EQ(p.generations[0].last_ns, 1'000U);
  EXPECT_EQ(p.generations[1].first_ns, 1'000'000'000U - 1'000);
  EXPECT_EQ(p.generations[1].last_ns, 1'000'000'000U + 1'000);
}

TEST(Clock, AnotherClockGoesOnWhereTheFirstStopped) {
  TraceWriter trace;
  begin(trace, 1, kStart, kGigahertz5, 70'000).alloc(1, kStart + 2'500, kA, 1);
  // From here on the timestamps are the monotonic clock itself.
  begin(trace, 2, 90'000, 1'000'000'000, 90'000).alloc(1, 90'500, kB, 2).end_row(91'000);
  const Profile p = read(trace);
  ASSERT_EQ(p.live_blocks.size(), 2U);
  EXPECT_EQ(p.live_blocks[0].birth_ns, 1'000U);
  EXPECT_EQ(p.live_blocks[1].birth_ns, 20'500U);
}

TEST(Clock, ATailBringsItsFrequency) {
  TraceWriter trace;  // the output has nothing but the header
  testing::Bytes events = testing::event(Ev::kGoCreateSyscall, 0, {1});
  for (const auto& more :
       {testing::event(Ev::kHeapObjectAlloc, 2'500, {2, 1}), testing::event(Ev::kHeapObjectFree, 25'000, {2})}) {
    events.insert(events.end(), more.begin(), more.end());
  }
  testing::TailWriter tail(1);
  tail.clock(kGigahertz5, kStart).slot(0, wire::kSlotFull, wire::kSlotEvents, 1, 1, kStart, events);
  const Profile p = read(trace, tail.bytes());
  EXPECT_EQ(p.clock_freq, kGigahertz5);
  ASSERT_EQ(p.generations.size(), 1U);
  EXPECT_EQ(p.generations[0].last_ns, 11'000U);
  EXPECT_EQ(p.peak.count + p.live.count, 0U) << "a block of unknown size is no peak of bytes";
  EXPECT_EQ(p.allocated.count, 1U);
  EXPECT_EQ(p.lifetimes[14].count, 1U);
}

}  // namespace
}  // namespace traceaf::reader
