// Google Benchmark: the parts of one event, each alone. The recorder runs in this process and records what the
// benchmarks tell it; nothing is hooked.
#include <benchmark/benchmark.h>
#include <x86intrin.h>
#include <ctime>
#include <filesystem>
#include <string>

#include "emitter/capture.h"
#include "emitter/clock.h"
#include "emitter/live_set.h"
#include "emitter/recorder.h"
#include "emitter/section.h"
#include "emitter/span_sink.h"
#include "emitter/spans/spans.h"
#include "emitter/types.h"
#include "emitter/wire/varint.h"
#include "tests/bench/call_tree.h"

namespace traceaf::emitter {
namespace {

constexpr uint64_t kBlocks = 1024;

// Addresses that look like blocks; nobody touches the memory.
const void* block(uint64_t i) {
  alignas(16) static char memory[16 * kBlocks];
  return memory + 16 * (i % kBlocks);
}

// ---- the write section and an event ----------------------------------------------------------------------------

void section_enter_leave(benchmark::State& state) {
  for (auto _ : state) {
    const Section section = Section::enter();
    benchmark::DoNotOptimize(section.ok());
  }
}
BENCHMARK(section_enter_leave);

// Enter, stamp, append, leave: a birth and a death without stack, type and span.
void event_pair(benchmark::State& state) {
  for (auto _ : state) {
    {
      Section section = Section::enter();
      section.event(wire::Ev::kHeapObjectAlloc, section.now(), uint64_t{12345}, uint64_t{6});
    }
    Section section = Section::enter();
    section.event(wire::Ev::kHeapObjectFree, section.now(), uint64_t{12345});
  }
}
BENCHMARK(event_pair);

void born_and_dying(benchmark::State& state) {
  uint64_t i = 0;
  for (auto _ : state) {
    object_born(__builtin_frame_address(0), block(i), 64, wire::Entry::k_malloc, 0);
    object_dying(__builtin_frame_address(0), block(i++));
  }
}
BENCHMARK(born_and_dying);

// ---- the stack ---------------------------------------------------------------------------------------------------

struct Capture : bench::Turns {
  Section& section;
  uint32_t node = 0;
  void once() { node = capture_context(section.record(), __builtin_frame_address(0)); }
};

// Argument: frames below the benchmark's own. From frame address to node id, rows included.
void capture(benchmark::State& state, bool changing) {
  Section section = Section::enter();
  Capture run{{&state, changing}, section};
  bench::go_down<0>(run, static_cast<int>(state.range(0)), bench::kOuterPath, false);
  if (run.node == 0) state.SkipWithError("no stack was taken");
}
BENCHMARK_CAPTURE(capture, same, false)->Arg(5)->Arg(20)->Arg(60);
BENCHMARK_CAPTURE(capture, changing, true)->Arg(5)->Arg(20)->Arg(60);

// ---- interning ---------------------------------------------------------------------------------------------------

// Argument: how many different call sites of one caller take turns.
void intern_context(benchmark::State& state) {
  static ChildCache cache;
  const auto sites = static_cast<uint64_t>(state.range(0));
  uint64_t i = 0;
  uint32_t node = 1;
  for (auto _ : state)
    node = context_child(cache, static_cast<uint32_t>(wire::NodeRoot::kComplete), 0x1000 + 16 * (i++ % sites), 0);
  if (node == 0) state.SkipWithError("no node");
}
BENCHMARK(intern_context)->Arg(1)->Arg(64)->Arg(4096);

// Argument: how many sizes take turns at one site.
void intern_type(benchmark::State& state) {
  Section section = Section::enter();
  const auto sizes = static_cast<uint64_t>(state.range(0));
  const uint32_t node = capture_context(section.record(), __builtin_frame_address(0));
  uint64_t i = 0;
  uint32_t id = 1;
  for (auto _ : state) id = type_of(section, node, wire::Entry::k_malloc, 0, 1 + i++ % sizes);
  if (id == 0) state.SkipWithError("no type");
}
BENCHMARK(intern_type)->Arg(1)->Arg(8)->Arg(1024);

// ---- integers ----------------------------------------------------------------------------------------------------

// Argument: bits of the value.
void varint_put(benchmark::State& state) {
  uint8_t out[wire::kMaxVarint];
  uint64_t value = uint64_t{1} << (state.range(0) - 1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(value);
    benchmark::DoNotOptimize(wire::put_varint(out, value));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(varint_put)->Arg(7)->Arg(14)->Arg(28)->Arg(49);

void varint_get(benchmark::State& state) {
  uint8_t bytes[wire::kMaxVarint];
  const uint8_t* end = wire::put_varint(bytes, uint64_t{1} << (state.range(0) - 1));
  uint64_t value = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(wire::get_varint(bytes, end, &value));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(varint_get)->Arg(7)->Arg(14)->Arg(28)->Arg(49);

// ---- clocks ------------------------------------------------------------------------------------------------------

uint64_t rdtsc() { return __rdtsc(); }
uint64_t rdtscp() {
  unsigned cpu = 0;
  return __rdtscp(&cpu);
}
uint64_t lfence_rdtsc() {
  _mm_lfence();
  return __rdtsc();
}
uint64_t monotonic() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000 + static_cast<uint64_t>(t.tv_nsec);
}

template <uint64_t (*kRead)()>
void clock_read(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(kRead());
}
BENCHMARK_TEMPLATE(clock_read, rdtsc);
BENCHMARK_TEMPLATE(clock_read, rdtscp);
BENCHMARK_TEMPLATE(clock_read, lfence_rdtsc);
BENCHMARK_TEMPLATE(clock_read, monotonic);
BENCHMARK_TEMPLATE(clock_read, clock_ns);

// What an event pays.
void clock_of_section(benchmark::State& state) {
  const Section section = Section::enter();
  for (auto _ : state) benchmark::DoNotOptimize(section.now());
}
BENCHMARK(clock_of_section);

// ---- spans and the live set --------------------------------------------------------------------------------------

// A block in a span that the thread has met.
void span_cache_hit(benchmark::State& state) {
  Section section = Section::enter();
  spans::Sink sink = span_sink(section);
  spans::Cache& cache = section.record().span_cache;
  uint64_t i = 0;
  for (auto _ : state) spans::object_born(cache, sink, reinterpret_cast<uintptr_t>(block(i++)), 16);
}
BENCHMARK(span_cache_hit);

// Argument: blocks that are live besides.
void live_set_add_remove(benchmark::State& state) {
  constexpr uintptr_t kFirst = uintptr_t{1} << 40;
  const auto live = static_cast<uint64_t>(state.range(0));
  live_set_start();
  for (uint64_t i = 0; i < live; ++i) live_set_add(nullptr, {kFirst + 32 * i, 32, 1, 1, 0});
  uint64_t i = 0;
  for (auto _ : state) {
    const uintptr_t address = kFirst + 32 * (live + i++ % kBlocks);
    live_set_add(nullptr, {address, 32, 1, 1, 0});
    live_set_remove(nullptr, address);
  }
  live_set_stop();
}
BENCHMARK(live_set_add_remove)->Arg(0)->Arg(100000);

}  // namespace
}  // namespace traceaf::emitter

int main(int argc, char** argv) {
  std::string folder = (std::filesystem::temp_directory_path() / "traceaf-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  std::string options = "TRACEALLOCFREE=1,generation=3600,generation_size=1G,out=" + folder + "/t.traf";
  char* envp[] = {options.data(), nullptr};
  traceaf::emitter::process_init(argc, argv, envp);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  traceaf::emitter::process_ending(traceaf::wire::EndReason::kExit, 0, true);
  std::filesystem::remove_all(folder);
  return 0;
}
