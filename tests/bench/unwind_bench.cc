// Nanoseconds a walk, warm, against libunwind's unw_backtrace, with several
// numbers of frames that have no frame pointer.
#include <benchmark/benchmark.h>
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <pthread.h>

#include "emitter/unwind/unwind.h"

namespace {

using traceaf::emitter::unwind::Bounds;
using traceaf::emitter::unwind::Step;
using traceaf::wire::NodeRoot;

constexpr int kCap = 512;

Bounds stack_of_thread() {
  pthread_attr_t attributes;
  void* lo = nullptr;
  size_t bytes = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &lo, &bytes);
  pthread_attr_destroy(&attributes);
  return {reinterpret_cast<uintptr_t>(lo), reinterpret_cast<uintptr_t>(lo) + bytes};
}
const Bounds g_stack = stack_of_thread();

using Capture = uint32_t (*)(uint32_t cap);

__attribute__((noinline)) uint32_t by_rules(uint32_t cap) {
  static Step frames[kCap];
  const auto start = traceaf::emitter::unwind::start_of(__builtin_frame_address(0));
  NodeRoot end = NodeRoot::kNone;
  const uint32_t n = traceaf::emitter::unwind::walk(start, {start.cfa, g_stack.hi}, frames, cap, &end);
  benchmark::DoNotOptimize(frames);
  return n;
}

// Without bounds: what a stack that nobody knows costs (a probe for each page).
__attribute__((noinline)) uint32_t by_rules_probing(uint32_t cap) {
  static Step frames[kCap];
  NodeRoot end = NodeRoot::kNone;
  const auto start = traceaf::emitter::unwind::start_of(__builtin_frame_address(0));
  const uint32_t n = traceaf::emitter::unwind::walk(start, {0, 0}, frames, cap, &end);
  benchmark::DoNotOptimize(frames);
  return n;
}

__attribute__((noinline)) uint32_t by_libunwind(uint32_t cap) {
  static void* frames[kCap];
  const int n = unw_backtrace(frames, static_cast<int>(cap));
  benchmark::DoNotOptimize(frames);
  return static_cast<uint32_t>(n);
}

struct Run {
  benchmark::State* state;
  Capture capture;
  uint32_t cap;
  uint32_t frames;
};

// Different functions, so that the frames are not all one rule.
template <int kWhich>
__attribute__((noinline)) void descend(Run* run, int depth) {
  volatile char room[16 + 16 * (kWhich % 5)];
  room[0] = static_cast<char>(depth);
  if (depth <= 0) {
    for (auto _ : *run->state) run->frames = run->capture(run->cap);
  } else {
    descend<(kWhich + 1) % 16>(run, depth - 1);
  }
  room[0] = static_cast<char>(room[0] + 1);
}

void walk_at(benchmark::State& state, Capture capture) {
  const auto cap = static_cast<uint32_t>(state.range(0));
  Run run{&state, capture, cap, 0};
  descend<0>(&run, static_cast<int>(cap));
  if (run.frames != cap) state.SkipWithError("the stack is shorter than asked for");
  // Time of one frame.
  state.counters["per_frame"] = benchmark::Counter(static_cast<double>(cap) * static_cast<double>(state.iterations()),
                                                   benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

BENCHMARK_CAPTURE(walk_at, rules, by_rules)->Arg(5)->Arg(20)->Arg(60);
BENCHMARK_CAPTURE(walk_at, rules_probing, by_rules_probing)->Arg(5)->Arg(20)->Arg(60);
BENCHMARK_CAPTURE(walk_at, libunwind, by_libunwind)->Arg(5)->Arg(20)->Arg(60);

}  // namespace

BENCHMARK_MAIN();
