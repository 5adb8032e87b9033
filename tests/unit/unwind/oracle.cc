// Comparison with libunwind (see oracle.h).
#include "tests/unit/unwind/oracle.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <pthread.h>

#include <atomic>

namespace traceaf::test {

namespace {

using emitter::unwind::Bounds;
using emitter::unwind::Step;
using wire::NodeRoot;

constexpr uint32_t kCap = 2048;

struct Pair {
  Step ours[kCap];
  uintptr_t theirs[kCap];
  uint32_t our_count = 0;
  uint32_t their_count = 0;
  NodeRoot end = NodeRoot::kNone;
};

std::atomic<uint64_t> g_compared, g_frames, g_interrupted, g_no_cfi, g_other_stack, g_different;
std::atomic<bool> g_have_first;
Pair g_first;

// A handler may interrupt a comparison of its own thread.
thread_local Pair t_pairs[2];
thread_local int t_depth = 0;

// Instruction pointers from the caller of `context`'s function outwards.
void libunwind_stack(unw_context_t* context, Pair* pair) {
  pair->their_count = 0;
  unw_cursor_t cursor;
  if (unw_init_local(&cursor, context) != 0) return;
  while (pair->their_count < kCap && unw_step(&cursor) > 0) {
    unw_word_t ip = 0;
    unw_get_reg(&cursor, UNW_REG_IP, &ip);
    if (ip == 0) break;
    pair->theirs[pair->their_count++] = ip;
  }
}

}  // namespace

Bounds stack_bounds() {
  static thread_local Bounds own{};
  if (own.hi == 0) {
    pthread_attr_t attributes;
    void* lo = nullptr;
    size_t bytes = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &lo, &bytes);
    pthread_attr_destroy(&attributes);
    const auto at = reinterpret_cast<uintptr_t>(lo);
    own = {at, at + bytes};
  }
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (here < own.lo || here >= own.hi) return {0, 0};
  return {here, own.hi};
}

Stack walk_from(const emitter::unwind::Start& start, const Bounds& bounds, uint32_t cap) {
  Stack stack;
  stack.frames.resize(cap);
  stack.frames.resize(emitter::unwind::walk(start, bounds, stack.frames.data(), cap, &stack.end));
  return stack;
}

Tally take_tally() {
  Tally tally;
  tally.compared = g_compared.exchange(0);
  tally.frames = g_frames.exchange(0);
  tally.interrupted = g_interrupted.exchange(0);
  tally.no_cfi = g_no_cfi.exchange(0);
  tally.other_stack = g_other_stack.exchange(0);
  tally.different = g_different.exchange(0);
  if (!g_have_first.exchange(false)) return tally;
  char text[40];
  snprintf(text, sizeof(text), "end %u\nours:  ", static_cast<unsigned>(g_first.end));
  tally.first_difference = text;
  for (uint32_t i = 0; i < g_first.our_count; ++i) {
    snprintf(text, sizeof(text), " %zx%s", static_cast<size_t>(g_first.ours[i].ra),
             g_first.ours[i].flags != 0 ? "*" : "");
    tally.first_difference += text;
  }
  tally.first_difference += "\ntheirs:";
  for (uint32_t i = 0; i < g_first.their_count; ++i) {
    snprintf(text, sizeof(text), " %zx", static_cast<size_t>(g_first.theirs[i]));
    tally.first_difference += text;
  }
  return tally;
}

extern "C" __attribute__((noinline)) void compare_here() {
  if (t_depth == 2) return;
  Pair& pair = t_pairs[t_depth++];
  const Bounds bounds = stack_bounds();
  const auto start = emitter::unwind::start_of(__builtin_frame_address(0));
  pair.our_count = emitter::unwind::walk(start, bounds, pair.ours, kCap, &pair.end);
  unw_context_t context;
  unw_getcontext(&context);
  libunwind_stack(&context, &pair);

  // Where ours stops for want of tables libunwind tries guesses of its own.
  const bool no_cfi = pair.end == NodeRoot::kNoCfi;
  bool equal = no_cfi ? pair.our_count <= pair.their_count
                      : pair.our_count == pair.their_count && pair.end == NodeRoot::kComplete;
  bool interrupted = false;
  for (uint32_t i = 0; equal && i < pair.our_count; ++i) {
    equal = pair.ours[i].ra == pair.theirs[i];
    interrupted |= (pair.ours[i].flags & emitter::unwind::kInterrupted) != 0;
  }
  ++g_compared;
  if (equal) g_frames += pair.our_count;
  if (interrupted) ++g_interrupted;
  if (no_cfi) ++g_no_cfi;
  if (bounds.hi == 0) ++g_other_stack;
  if (!equal && g_different++ == 0 && !g_have_first) {
    g_first = pair;
    g_have_first = true;
  }
  --t_depth;
}

}  // namespace traceaf::test
