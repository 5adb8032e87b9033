// Builds the golden traces, one function a scenario. Addresses, times and sizes are small so that the numbers expected
// can be checked by eye.
#include "tests/golden/scenarios.h"

namespace traceaf::golden {
namespace {

using testing::Bytes;
using testing::GenerationWriter;
using testing::TraceWriter;
using wire::EndReason;
using wire::Entry;
using wire::Ev;
using wire::MarkerKind;
using wire::Row;

constexpr uint64_t kA = 0x10010, kB = 0x10020, kC = 0x10040, kD = 0x10100;

// A generation with all rows that it needs. Types: 1 = malloc(24), 2 = calloc(100), 3 = realloc(200).
GenerationWriter& begin(TraceWriter& trace, uint64_t number = 1, bool exact = true) {
  auto& gen = trace.generation(number, 1000 * number);
  gen.process(1000, exact).module(1, 1, 0x400000, 0x500000, "/bin/app").node(8, 1, 1, 0x10).node(9, 8, 1, 0x20);
  gen.thread(1, 101, 1000, 1, "main");
  gen.site(1, 9, Entry::k_malloc, 24).site(2, 9, Entry::k_calloc, 100).site(3, 8, Entry::k_realloc, 200);
  return gen;
}

Golden whole(const TraceWriter& trace, std::map<std::string, uint64_t> expect) {
  Golden golden;
  golden.trace = trace.bytes();
  golden.expect = std::move(expect);
  return golden;
}

Golden failing(const TraceWriter& trace, const char* failure, std::map<std::string, uint64_t> expect = {}) {
  Golden golden = whole(trace, std::move(expect));
  golden.failure = failure;
  return golden;
}

// ---- whole traces --------------------------------------------------------------------------------------------------

Golden one_thread() {
  TraceWriter trace;
  begin(trace).alloc(1, 2000, kA, 1).alloc(1, 2010, kB, 2).free(1, 2020, kB).end_row(3000);
  return whole(trace, {{"events", 3},
                       {"allocations", 2},
                       {"allocated_bytes", 124},
                       {"frees", 1},
                       {"live_blocks", 1},
                       {"live_bytes", 24},
                       {"peak_bytes", 124},
                       {"peak_time_ns", 1010},
                       {"temporary", 1},
                       {"threads", 1},
                       {"generations", 1},
                       {"duration_ns", 20}});
}

Golden all_nine_events() {
  TraceWriter trace;
  begin(trace)
      .span(Ev::kSpan, 1, 1500, 0x10000, 4)
      .exists(1, 1500, kA, 1)
      .stack(Ev::kGoroutineStack, 1, 1500, 0x80000, 13)
      .span(Ev::kSpanAlloc, 1, 1600, 0x20000, 2)
      .alloc(1, 1700, 0x20010, 2)
      .stack(Ev::kGoroutineStackAlloc, 1, 1800, 0x90000, 13)
      .free(1, 1900, kA)
      .free(1, 1910, 0x20010)
      .stack(Ev::kGoroutineStackFree, 1, 1920, 0x90000)
      .span(Ev::kSpanFree, 1, 1930, 0x20000)
      .end_row(3000);
  return whole(trace, {{"events", 10},
                       {"allocations", 1},
                       {"inherited", 1},
                       {"frees", 2},
                       {"live_blocks", 0},
                       {"peak_bytes", 124},
                       {"spans", 1},
                       {"span_allocs", 1},
                       {"span_frees", 1},
                       {"stacks_born", 2},
                       {"stacks_freed", 1}});
}

Golden two_generations_restart_their_types() {
  TraceWriter trace;
  begin(trace).alloc(1, 1500, kA, 1).alloc(1, 1510, kB, 2);
  auto& second = trace.generation(2, 2000);
  second.process(1000).module(1, 1, 0x400000, 0x500000, "/bin/app").node(8, 1, 1, 0x10).node(9, 8, 1, 0x20);
  second.thread(1, 101, 1000, 1, "main").site(1, 9, Entry::k_calloc, 100).site(2, 9, Entry::k_malloc, 24);
  second.alloc(1, 2500, kC, 1).free(1, 2510, kA).alloc(1, 2520, kA, 2).end_row(3000);
  return whole(trace, {{"allocations", 4},
                       {"allocated_bytes", 248},
                       {"live_bytes", 224},
                       {"live_blocks", 3},
                       {"sites", 2},
                       {"generations", 2}});
}

Golden empty_generation_between() {
  TraceWriter trace;
  begin(trace).alloc(1, 1500, kA, 1);
  trace.generation(2, 2000).process(1000);
  begin(trace, 7).free(1, 7500, kA).end_row(8000);
  return whole(trace, {{"generations", 3}, {"events", 2}, {"live_blocks", 0}});
}

Golden four_generations_with_clocks() {
  TraceWriter trace;
  const uint64_t times[] = {9, 38, 58, 83};
  for (uint64_t g = 1; g <= 4; ++g) {
    auto& gen = trace.generation(g, times[g - 1]);
    gen.process(9).thread(1, 101, 9, 1, "main").site(1, 1, Entry::k_malloc, 8);
    gen.alloc(1, times[g - 1] + 1, kA + 16 * g, 1);
    if (g == 4) gen.end_row(100);
  }
  return whole(trace, {{"generations", 4}, {"allocations", 4}, {"duration_ns", 74}, {"live_bytes", 32}});
}

Golden realloc_moves_a_block() {
  TraceWriter trace;
  begin(trace).alloc(1, 2000, kA, 1).alloc(1, 2005, kB, 1).free(1, 2010, kA).alloc(1, 2020, kD, 3).end_row(3000);
  return whole(trace, {{"allocations", 3}, {"frees", 1}, {"moves", 1}, {"live_bytes", 224}, {"temporary", 0}});
}

Golden thread_ends_and_its_tid_is_reused() {
  TraceWriter trace;
  begin(trace)
      .thread(2, 102, 1500, 4, "worker")
      .alloc(2, 1600, kA, 1)
      .thread_end(2, 1700)
      .thread(3, 102, 1800, 0, "worker")
      .alloc(3, 1900, kB, 1)
      .free(3, 1950, kA)
      .end_row(3000);
  return whole(trace, {{"threads", 3}, {"allocations", 2}, {"frees", 1}, {"temporary", 0}, {"live_blocks", 1}});
}

Golden block_reused_at_one_time() {
  TraceWriter trace;
  begin(trace)
      .thread(2, 102, 1000, 0, "worker")
      .alloc(2, 1600, kA, 1)
      .free(2, 2000, kA)
      .alloc(1, 2000, kA, 2)
      .end_row(3000);
  return whole(trace,
               {{"double_births", 0}, {"unknown_frees", 0}, {"reordered", 0}, {"live_bytes", 100}, {"frees", 1}});
}

Golden block_handed_over_at_one_time() {
  TraceWriter trace;
  begin(trace).thread(2, 102, 1000, 0, "worker").alloc(1, 2000, kA, 2).free(2, 2000, kA).end_row(9000);
  return whole(trace, {{"unknown_frees", 0}, {"reordered", 1}, {"live_blocks", 0}, {"peak_bytes", 100}});
}

Golden recording_paused_without_snapshot() {
  TraceWriter trace;
  begin(trace).alloc(1, 1500, kA, 1).alloc(1, 1510, kB, 1).marker(1600, MarkerKind::kOff);
  begin(trace, 2, false).marker(2000, MarkerKind::kOn).free(1, 2500, kA).alloc(1, 2600, kB, 2).end_row(3000);
  return whole(
      trace,
      {{"frees_before", 1}, {"unknown_frees", 0}, {"double_births", 0}, {"live_bytes", 100}, {"live_blocks", 1}});
}

Golden recording_paused_in_standby() {
  TraceWriter trace;
  begin(trace).alloc(1, 1500, kA, 1).alloc(1, 1510, kB, 1).marker(1600, MarkerKind::kStandby);
  begin(trace, 2)
      .marker(2000, MarkerKind::kOn)
      .exists(1, 2000, kB, 1)
      .exists(1, 2000, kC, 2)
      .free(1, 2500, kC)
      .end_row(3000);
  return whole(trace, {{"inherited", 1}, {"frees", 1}, {"unknown_frees", 0}, {"live_blocks", 1}, {"live_bytes", 24}});
}

Golden block_below_the_minimum_address() {
  TraceWriter trace;
  begin(trace).alloc(1, 2000, 0x8010, 1).span(Ev::kSpanAlloc, 1, 2001, 0x8000).free(1, 2002, 0x8010).end_row(3000);
  return whole(trace, {{"allocations", 1}, {"frees", 1}, {"unknown_frees", 0}, {"spans", 1}, {"live_blocks", 0}});
}

Golden largest_values() {
  TraceWriter trace;
  const uint64_t top = ~uint64_t{0};
  auto& gen = trace.generation(top, 1000);
  gen.process(1000).thread(top - 1, top, top, 0, "t").node(top, 1, 0, top);
  gen.row(1, Row::kSite, {top, top, 1, 63, top}).type(top, top, top, "t");
  gen.event(top - 1, top - 1, Ev::kHeapObjectAlloc, {top, top}).event(top - 1, top, Ev::kHeapObjectFree, {top});
  gen.end_row(top);
  return whole(trace,
               {{"allocations", 1}, {"allocated_bytes", top}, {"peak_bytes", top}, {"live_blocks", 0}, {"frees", 1}});
}

// Go's writer reserves ten bytes for a size and fills them in later.
Golden padded_integers() {
  TraceWriter trace;
  begin(trace)
      .alloc(1, 2000, kA, 1)
      .raw({1, 1, 1, 0xd1, 0x0f, 0x83, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 133, 0, 2})
      .end_row(3000);
  return whole(trace, {{"allocations", 1}, {"frees", 1}, {"live_blocks", 0}});
}

// A row tag and fields of a newer recorder are skipped.
Golden newer_rows_are_skipped() {
  TraceWriter trace;
  Bytes longer;
  for (const uint64_t v : {uint64_t{3000}, uint64_t{1}, uint64_t{0}, uint64_t{7}, uint64_t{8}}) testing::put(longer, v);
  begin(trace)
      .alloc(1, 2000, kA, 1)
      .row_bytes(1, 250, {1, 2, 3})
      .row_bytes(1, static_cast<uint64_t>(Row::kEnd), longer);
  return whole(trace, {{"allocations", 1}, {"live_bytes", 24}});
}

// ---- the end is missing or in the tail -----------------------------------------------------------------------------

Bytes events_of(std::initializer_list<Bytes> events) {
  Bytes out;
  for (const Bytes& e : events) out.insert(out.end(), e.begin(), e.end());
  return out;
}

Golden with_tail(uint64_t ended) {
  TraceWriter trace;
  begin(trace).alloc(1, 1500, kA, 1);
  // Generation 2 was being written: one batch reached the output, whose slot was not free yet; a second did not.
  const Bytes first =
      events_of({testing::event(Ev::kGoStatus, 0, {1, 1, 3}), testing::event(Ev::kHeapObjectAlloc, 5, {4, 1})});
  const Bytes second =
      events_of({testing::event(Ev::kHeapObjectFree, 0, {2}), testing::event(Ev::kHeapObjectAlloc, 3, {6, 1})});
  trace.generation(2, 2000, true).raw(testing::batch(2, 1, 2000, first)).unfinished();
  Golden golden = whole(trace, {{"allocations", 3},
                                {"frees", 1},
                                {"unknown_types", 0},
                                {"double_births", 0},
                                {"live_blocks", 2},
                                {"generations", 2},
                                {"from_tail", 1},
                                {"lost_bytes", 0}});
  golden.has_tail = true;
  golden.tail_closed = 1;
  golden.tail_ended = ended;
  Bytes rows{wire::kBatchRows};
  testing::put(rows, static_cast<uint64_t>(Row::kSite));
  rows.push_back(5);
  for (const uint8_t v : {2, 18, 1, 0, 24}) rows.push_back(v);  // ids as differences from 0
  golden.tail_slots = {{wire::kSlotFull, wire::kSlotEvents, 2, 1, 2000, first},
                       {wire::kSlotFilling, wire::kSlotEvents, 2, 1, 2100, second},
                       {wire::kSlotFilling, wire::kSlotRows, 2, 1, 2000, rows}};
  return golden;
}

Golden killed_with_a_tail() {
  Golden golden = with_tail(0);
  golden.failure = "last word is missing after generation 2 \\(what it had recorded was recovered from the tail\\)";
  return golden;
}

// The recorder had said its last word; only the file system work was not done.
Golden fast_exit_with_a_tail() {
  Golden golden = with_tail(static_cast<uint64_t>(EndReason::kFastExit));
  golden.expect["complete"] = 1;
  golden.failure = "expected EndOfGeneration behind generation 2";  // the file alone is not valid
  return golden;
}

Golden killed_without_a_tail() {
  TraceWriter trace;
  begin(trace).alloc(1, 1500, kA, 1);
  begin(trace, 2).alloc(1, 2500, kB, 1).unfinished();
  return failing(trace, "expected the end of generation 2, found the end of the input",
                 {{"complete", 0}, {"allocations", 2}, {"generations", 2}});
}

Golden exec_failed_and_the_program_was_killed() {
  TraceWriter trace;
  begin(trace).alloc(1, 1500, kA, 1).end_row(1600, EndReason::kExec);
  begin(trace, 2).alloc(1, 2500, kB, 1);
  return failing(trace, "last word is missing after generation 2", {{"complete", 0}, {"allocations", 2}});
}

Golden disk_was_full() {
  TraceWriter trace;
  begin(trace).alloc(1, 1500, kA, 1).end_row(1600, EndReason::kDisk);
  return failing(trace, "an output that could not be written", {{"complete", 0}, {"allocations", 1}});
}

Golden cut_inside_a_batch() {
  TraceWriter trace;
  begin(trace).alloc(1, 1500, kA, 1);
  begin(trace, 2).alloc(1, 2500, kB, 1);
  Golden golden = failing(trace, "bytes of a batch, found", {{"complete", 0}, {"generations", 2}, {"allocations", 2}});
  golden.trace.resize(golden.trace.size() - 10);  // into the type table of generation 2
  return golden;
}

// ---- what Go's reader refuses --------------------------------------------------------------------------------------

// Generation 1 is sound; generation 2 has the fault.
Golden second_generation_with(const Bytes& bytes, const char* failure, uint64_t allocations = 1) {
  TraceWriter trace;
  begin(trace).alloc(1, 1500, kA, 1);
  begin(trace, 2).raw(bytes).end_row(3000);
  return failing(trace, failure, {{"complete", 0}, {"allocations", allocations}});
}

Golden no_sync() {
  TraceWriter trace;
  begin(trace).alloc(1, 1500, kA, 1);
  trace.generation(2, 2000, true).info().process(1000).alloc(1, 2500, kB, 1);
  return failing(trace, "expected a Sync batch in generation 2, found none", {{"allocations", 1}, {"generations", 1}});
}

Golden two_syncs() {
  return second_generation_with(testing::batch(2, wire::kNoThread, 1, {50, 8, 1, 51, 0, 1, 1, 1}), "found a second");
}

Golden generation_zero() {
  return second_generation_with(testing::batch(0, 1, 2500, {133, 0, 2}),
                                "expected a generation number from 1, found 0");
}

Golden generations_interleaved() {
  return second_generation_with(testing::batch(3, 1, 2500, {133, 0, 2}), "found a batch of generation 3");
}

Golden batch_too_long() {
  return second_generation_with({1, 2, 1, 0, 0x81, 0x80, 4, 133, 0, 1}, "at most 65536 bytes, found 65537");
}

Golden event_without_a_thread() {
  return second_generation_with(testing::batch(2, wire::kNoThread, 2500, {133, 0, 2}),
                                "expected a thread for HeapObjectFree");
}

Golden event_60() {
  return second_generation_with(testing::batch(2, 1, 2500, {25, 0, 1, 1, 3, 60, 0}), "invalid event type 60");
}

Golden event_137() {
  return second_generation_with(testing::batch(2, 1, 2500, {25, 0, 1, 1, 3, 137, 0}), "invalid event type 137");
}

Golden integer_cut() {
  return second_generation_with(testing::batch(2, 1, 2500, {25, 0, 1, 1, 3, 132, 0, 0x80}),
                                "expected 3 integers of HeapObjectAlloc");
}

Golden integer_too_long() {
  return second_generation_with(
      testing::batch(2, 1, 2500,
                     {25, 0, 1, 1, 3, 133, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0}),
      "integers of at most 64 bits in HeapObjectFree");
}

// Tables of Go that carry nothing for us: the reader goes on, the validator complains.
Golden table_with(const Bytes& body, const char* failure) {
  TraceWriter trace;
  begin(trace).alloc(1, 1500, kA, 1).raw(testing::batch(1, wire::kNoThread, 0, body)).end_row(3000);
  return failing(trace, failure, {{"complete", 1}, {"allocations", 1}});
}

Golden string_too_long() {
  Bytes body{4, 5, 1};
  testing::put(body, 1025);
  body.resize(body.size() + 1025, 'x');
  return table_with(body, "expected a string of at most 1024 bytes, found 1025");
}

Golden string_twice() { return table_with({4, 5, 1, 1, 'a', 5, 1, 1, 'a'}, "expected string 1 once"); }

Golden stack_too_deep() {
  Bytes body{2, 3, 1};
  testing::put(body, 129);
  for (int i = 0; i < 4 * 129; ++i) body.push_back(1);
  return table_with(body, "expected a stack of at most 128 frames, found 129");
}

Golden frame_without_its_string() {
  return table_with({2, 3, 1, 1, 9, 7, 0, 1}, "expected a defined string as function of a frame, found id 7");
}

// ---- what only our validator refuses -------------------------------------------------------------------------------

Golden thread_without_status() {
  TraceWriter trace;
  begin(trace).without_status(1).alloc(1, 2000, kA, 1).end_row(3000);
  return failing(trace, "expected GoCreateSyscall as the first event of thread 1",
                 {{"complete", 1}, {"allocations", 1}});
}

Golden event_after_the_end_of_its_thread() {
  TraceWriter trace;
  begin(trace).alloc(1, 2000, kA, 1).thread_end(1, 2100).free(1, 2200, kA).end_row(3000);
  return failing(trace, "expected nothing of thread 1 behind its end", {{"complete", 1}, {"frees", 1}});
}

Golden block_born_twice() {
  TraceWriter trace;
  begin(trace).alloc(1, 2000, kA, 1).alloc(1, 2010, kA, 2).end_row(9000);
  return failing(trace, "expected no object at 0x10010 before its birth",
                 {{"double_births", 1}, {"live_blocks", 1}, {"live_bytes", 100}});
}

Golden block_freed_that_never_was() {
  TraceWriter trace;
  begin(trace).free(1, 2000, kA).end_row(9000);
  return failing(trace, "expected a live object at 0x10010", {{"unknown_frees", 1}, {"frees", 1}, {"live_blocks", 0}});
}

Golden site_with_an_undefined_node() {
  TraceWriter trace;
  begin(trace).site(4, 77, Entry::k_malloc, 8).alloc(1, 2000, kA, 4).end_row(3000);
  return failing(trace, "expected node 77 of a site defined", {{"complete", 1}, {"live_bytes", 8}});
}

Golden type_that_is_not_defined() {
  TraceWriter trace;
  begin(trace).alloc(1, 2000, kA, 55).end_row(3000);
  return failing(trace, "expected type 55 defined", {{"unknown_types", 1}, {"live_blocks", 1}, {"live_bytes", 0}});
}

}  // namespace

const std::vector<Scenario>& scenarios() {
#define TRACEAF_SCENARIO(name) \
  { #name, name }
  static const std::vector<Scenario> all = {
      TRACEAF_SCENARIO(one_thread),
      TRACEAF_SCENARIO(all_nine_events),
      TRACEAF_SCENARIO(two_generations_restart_their_types),
      TRACEAF_SCENARIO(empty_generation_between),
      TRACEAF_SCENARIO(four_generations_with_clocks),
      TRACEAF_SCENARIO(realloc_moves_a_block),
      TRACEAF_SCENARIO(thread_ends_and_its_tid_is_reused),
      TRACEAF_SCENARIO(block_reused_at_one_time),
      TRACEAF_SCENARIO(block_handed_over_at_one_time),
      TRACEAF_SCENARIO(recording_paused_without_snapshot),
      TRACEAF_SCENARIO(recording_paused_in_standby),
      TRACEAF_SCENARIO(block_below_the_minimum_address),
      TRACEAF_SCENARIO(largest_values),
      TRACEAF_SCENARIO(padded_integers),
      TRACEAF_SCENARIO(newer_rows_are_skipped),
      TRACEAF_SCENARIO(killed_with_a_tail),
      TRACEAF_SCENARIO(fast_exit_with_a_tail),
      TRACEAF_SCENARIO(killed_without_a_tail),
      TRACEAF_SCENARIO(exec_failed_and_the_program_was_killed),
      TRACEAF_SCENARIO(disk_was_full),
      TRACEAF_SCENARIO(cut_inside_a_batch),
      TRACEAF_SCENARIO(no_sync),
      TRACEAF_SCENARIO(two_syncs),
      TRACEAF_SCENARIO(generation_zero),
      TRACEAF_SCENARIO(generations_interleaved),
      TRACEAF_SCENARIO(batch_too_long),
      TRACEAF_SCENARIO(event_without_a_thread),
      TRACEAF_SCENARIO(event_60),
      TRACEAF_SCENARIO(event_137),
      TRACEAF_SCENARIO(integer_cut),
      TRACEAF_SCENARIO(integer_too_long),
      TRACEAF_SCENARIO(string_too_long),
      TRACEAF_SCENARIO(string_twice),
      TRACEAF_SCENARIO(stack_too_deep),
      TRACEAF_SCENARIO(frame_without_its_string),
      TRACEAF_SCENARIO(thread_without_status),
      TRACEAF_SCENARIO(event_after_the_end_of_its_thread),
      TRACEAF_SCENARIO(block_born_twice),
      TRACEAF_SCENARIO(block_freed_that_never_was),
      TRACEAF_SCENARIO(site_with_an_undefined_node),
      TRACEAF_SCENARIO(type_that_is_not_defined),
  };
#undef TRACEAF_SCENARIO
  return all;
}

}  // namespace traceaf::golden
