// Each rule of the validator on a trace that breaks it alone.
#include "reader/validate.h"

#include <gtest/gtest.h>

#include "tests/support/trace_writer.h"

namespace traceaf::reader {
namespace {

using testing::Bytes;
using testing::GenerationWriter;
using testing::TraceWriter;
using wire::Entry;
using wire::Ev;

constexpr uint64_t kA = 0x10010, kB = 0x10020;

// What a sound generation needs: rows for everything it uses. Times from 2000 * number on.
GenerationWriter& sound(TraceWriter& trace, uint64_t number = 1, bool exact = true) {
  auto& gen = trace.generation(number, 2000 * number);
  gen.process(1000, exact).module(1, 1, 0x400000, 0x500000, "/bin/app").node(8, 1, 1, 0x10).node(9, 8, 1, 0x20);
  gen.thread(1, 101, 1000, 1, "main").thread(2, 102, 1000, 0, "worker").site(1, 9, Entry::k_malloc, 24);
  return gen;
}

Report check(const TraceWriter& trace) {
  auto report = validate_bytes(trace.bytes(), "t");
  EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.error().text());
  return report.ok() ? std::move(report.value()) : Report();
}

// The trace breaks `rule` and no other.
void breaks(const TraceWriter& trace, const std::string& rule, uint64_t times = 1) {
  const Report report = check(trace);
  ASSERT_EQ(report.counts.size(), 1U) << (report.findings.empty() ? "nothing found" : report.findings.back().text());
  EXPECT_EQ(report.counts[0].rule, rule) << report.findings[0].text();
  EXPECT_EQ(report.counts[0].count, times);
}

TEST(Validate, SoundTraceHasNoFinding) {
  TraceWriter trace;
  sound(trace).alloc(1, 2100, kA, 1).free(2, 2200, kA).alloc(2, 2300, kB, 1);
  sound(trace, 2).free(1, 4100, kB).thread_end(1, 4200).end_row(4300);
  const Report report = check(trace);
  EXPECT_TRUE(report.ok());
  EXPECT_TRUE(report.findings.empty()) << report.findings[0].text();
  EXPECT_EQ(report.generations, 2U);
  EXPECT_EQ(report.allocfree_events, 4U);
  EXPECT_EQ(report.events, 4U + 3 + 1);
}

TEST(Validate, FlagsOfANodeMayBeLeftOutOrWritten) {
  TraceWriter trace;
  sound(trace).row(1, wire::Row::kNode, {8, 1, 1, 0x10, 0}).row(1, wire::Row::kNode, {20, 8, 1, 0x10, 1}).end_row(3000);
  const Report report = check(trace);
  EXPECT_TRUE(report.findings.empty()) << report.findings[0].text();
}

TEST(Validate, KilledProgramIsAWarning) {
  TraceWriter trace;
  sound(trace).alloc(1, 2100, kA, 1);
  const Report report = check(trace);
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.warnings(), 1U);
  EXPECT_EQ(report.counts[0].rule, "end-missing");
  EXPECT_NE(report.findings[0].text().find("warning: offset 16 (generation 1): "), std::string::npos)
      << report.findings[0].text();
}

TEST(Validate, Structure) {
  TraceWriter junk;
  sound(junk).end_row(3000).raw({60});
  const Report report = check(junk);
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.counts.back().rule, "structure");

  TraceWriter open;
  sound(open).end_row(3000).unfinished();
  const Report unfinished = check(open);
  EXPECT_EQ(unfinished.counts[0].rule, "end-of-generation");
  EXPECT_EQ(unfinished.counts[1].rule, "structure");

  auto empty = validate_bytes(TraceWriter().bytes(), "t");
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty.value().counts[0].rule, "empty");
}

TEST(Validate, Sync) {
  TraceWriter late;
  auto& gen = late.generation(1, 2000, true);
  gen.raw(testing::batch(1, wire::kNoThread, 0, {4})).sync(2000).info();
  breaks(late, "sync-first");

  TraceWriter still;
  sound(still);
  auto& second = still.generation(2, 2000, true);
  second.sync(1999).info().process(1000).end_row(3000);
  const Report report = check(still);
  EXPECT_EQ(report.counts[0].rule, "sync-clock");
  EXPECT_EQ(report.counts[0].count, 2U) << "the time and the monotonic clock went back";
}

TEST(Validate, StringsAndStacks) {
  const auto with = [](const Bytes& body, const std::string& rule) {
    TraceWriter trace;
    sound(trace).raw(testing::batch(1, wire::kNoThread, 0, body)).end_row(3000);
    breaks(trace, rule);
  };
  Bytes long_string{4, 5, 1};
  testing::put(long_string, 1025);
  long_string.resize(long_string.size() + 1025);
  with(long_string, "table");
  with({4, 5, 1, 1, 'a', 5, 1, 1, 'a'}, "string-twice");
  with({4, 5, 0, 1, 'a'}, "string-id");
  with({4, 5, 1, 9, 'a'}, "table");
  with({4, 3, 1, 0}, "table");
  Bytes deep{2, 3, 1};
  testing::put(deep, 129);
  deep.resize(deep.size() + 4 * 129);
  with(deep, "table");
  with({2, 3, 1, 0, 3, 1, 0}, "stack-twice");
  with({2, 3, 1, 1, 9, 7, 0, 1}, "frame-string");
  with({6, 7, 1, 1, 1, 1, 5}, "sample-stack");
}

TEST(Validate, Rows) {
  const auto with = [](const std::string& rule, const std::function<void(GenerationWriter&)>& more) {
    TraceWriter trace;
    more(sound(trace).end_row(3000));
    breaks(trace, rule);
  };
  with("experiment", [](auto& g) { g.raw(testing::experimental_batch(1, 1, 0, {0}, 2)); });
  with("row-unknown", [](auto& g) { g.row_bytes(1, 99, {}); });
  with("row-short", [](auto& g) { g.row(1, wire::Row::kMarker, {2500, 6}); });
  with("row", [](auto& g) { g.row_bytes(1, static_cast<uint64_t>(wire::Row::kMarker), {0x80}); });
  with("process", [](auto& g) { g.process(1000); });
  with("info-twice", [](auto& g) { g.info(); });
  with("node-undefined", [](auto& g) { g.node(20, 19, 0, 1); });
  with("node-undefined", [](auto& g) { g.site(5, 30, Entry::k_malloc, 8); });
  with("node-id", [](auto& g) { g.node(5, 1, 0, 1); });
  with("node-changed", [](auto& g) { g.node(8, 1, 1, 0x11); });
  with("node-changed", [](auto& g) { g.row(1, wire::Row::kNode, {8, 1, 1, 0x10, wire::kNodeGuessed}); });
  with("row-short", [](auto& g) { g.row(1, wire::Row::kNode, {20, 1, 1}); });
  with("module-undefined", [](auto& g) { g.node(20, 1, 7, 1); });
  with("module-range", [](auto& g) { g.module(3, 0, 0x5000, 0x4000, "x"); });
  with("site-twice", [](auto& g) { g.row(1, wire::Row::kSite, {1, 9, 1, 0, 24}); });
  with("site-without-type", [](auto& g) { g.row(1, wire::Row::kSite, {6, 9, 1, 0, 24}); });
  with("site-size", [](auto& g) { g.row(1, wire::Row::kSite, {6, 9, 1, 0, 24}).type(6, 0, 25, "t"); });
  with("type-twice", [](auto& g) { g.type(1, 0, 24, "t"); });
  with("type-id", [](auto& g) { g.type(0, 0, 24, "t"); });
  with("type-table", [](auto& g) { g.raw(testing::experimental_batch(1, 1, 0, {0, 7, 1})); });
}

TEST(Validate, ThreadStatus) {
  TraceWriter none;
  sound(none).without_status(1).alloc(1, 2100, kA, 1).end_row(3000);
  breaks(none, "thread-status");

  TraceWriter second;
  sound(second).alloc(1, 2100, kA, 1);
  sound(second, 2).without_status(1).free(1, 4100, kA).end_row(5000);
  breaks(second, "thread-status");

  TraceWriter other_state;
  sound(other_state).alloc(1, 2100, kA, 1);
  sound(other_state, 2).without_status(1).event(1, 4100, Ev::kGoStatus, {1, 1, 2}).end_row(5000);
  breaks(other_state, "thread-status");

  TraceWriter shared_g;
  sound(shared_g).alloc(1, 2100, kA, 1).without_status(2).event(2, 2200, Ev::kGoCreateSyscall, {1}).end_row(3000);
  breaks(shared_g, "thread-status");

  TraceWriter ended;
  sound(ended).alloc(1, 2100, kA, 1).thread_end(1, 2200).free(1, 2300, kA).end_row(3000);
  breaks(ended, "thread-ended");

  TraceWriter scheduled;
  sound(scheduled).alloc(1, 2100, kA, 1).event(1, 2200, Ev::kGoStop, {0, 0}).end_row(3000);
  breaks(scheduled, "context");

  TraceWriter unnamed;
  sound(unnamed).alloc(3, 2100, kA, 1).end_row(3000);
  breaks(unnamed, "thread-undefined");
}

TEST(Validate, Events) {
  TraceWriter undefined;
  sound(undefined).alloc(1, 2100, kA, 7).end_row(3000);
  breaks(undefined, "type-undefined");

  TraceWriter malformed;
  sound(malformed).raw(testing::batch(1, 1, 2000, {132, 1})).end_row(3000);
  breaks(malformed, "event");

  TraceWriter back;
  sound(back).alloc(1, 2100, kA, 1).next_batch(1).free(1, 2050, kA).end_row(3000);
  breaks(back, "time-back");

  TraceWriter twice;
  sound(twice).alloc(1, 2100, kA, 1).alloc(1, 2200, kA, 1).end_row(3000);
  breaks(twice, "double-birth");

  TraceWriter unknown;
  sound(unknown).free(1, 2100, kA).free(1, 2101, kB).end_row(3000);
  breaks(unknown, "unknown-death", 2);

  TraceWriter inexact;
  sound(inexact, 1, false).free(1, 2100, kA).end_row(3000);
  EXPECT_TRUE(check(inexact).findings.empty());

  TraceWriter inverted;
  sound(inverted).alloc(1, 2100, kA, 1).alloc(2, 5000, kA, 1).free(1, 5400, kA).end_row(9000);
  breaks(inverted, "inverted-pair");
  EXPECT_TRUE(check(inverted).ok());

  TraceWriter span;
  sound(span).span(Ev::kSpanFree, 1, 2100, 0x20000).end_row(3000);
  breaks(span, "unknown-death");

  TraceWriter span_twice;
  sound(span_twice).span(Ev::kSpanAlloc, 1, 2100, 0x20000).span(Ev::kSpanAlloc, 1, 2200, 0x20000).end_row(3000);
  breaks(span_twice, "double-birth");

  TraceWriter no_pages;
  sound(no_pages).span(Ev::kSpanAlloc, 1, 2100, 0x20000, 0).end_row(3000);
  breaks(no_pages, "span-empty");

  TraceWriter stack;
  sound(stack).stack(Ev::kGoroutineStackFree, 1, 2100, 0x20000).end_row(3000);
  breaks(stack, "unknown-death");
}

TEST(Validate, FindingsOfARuleAreLimitedButCounted) {
  TraceWriter trace;
  auto& gen = sound(trace);
  for (uint64_t i = 0; i < 100; ++i) gen.free(1, 2100 + i, kA);
  gen.end_row(3000);
  ValidateOptions options;
  options.limit = 5;
  auto report = validate_bytes(trace.bytes(), "t", options);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report.value().findings.size(), 5U);
  EXPECT_EQ(report.value().errors(), 100U);
}

TEST(Validate, GapsInRecordingForgiveWhatHappenedInThem) {
  TraceWriter trace;
  sound(trace).alloc(1, 2100, kA, 1).marker(2200, wire::MarkerKind::kStandby);
  sound(trace, 2)
      .marker(4000, wire::MarkerKind::kOn)
      .exists(1, 4000, kB, 1)
      .free(1, 4100, kB)
      .alloc(1, 4200, kA, 1)
      .end_row(5000);
  const Report report = check(trace);
  EXPECT_EQ(report.errors(), 0U) << report.findings[0].text();
}

}  // namespace
}  // namespace traceaf::reader
