// What the files of this room share: the set with its lock, the allocator in line and what is known of it.
// Lock order: `reconciling`, `lock`, `proc_lock`. None is held while the allocator runs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "emitter/lock.h"
#include "emitter/spans/glibc.h"
#include "emitter/spans/interval_set.h"
#include "emitter/spans/jemalloc.h"
#include "emitter/spans/page_cache.h"
#include "emitter/spans/spans.h"

namespace traceaf::emitter::spans {

enum class Allocator : uint32_t {
  kGeneric = 0,
  kGlibc = 1,
  kJemallocUnread = 2,   // its size classes are asked for at the first object,
  kJemallocReading = 3,  // by one thread; objects born meanwhile are found by later ones of their slab
  kJemalloc = 4
};

struct State {
  // Read by every event. Stored with release behind what it stands for (geometry, function pointers).
  alignas(64) std::atomic<Allocator> allocator{Allocator::kGeneric};
  size_t (*usable_size)(void*) = nullptr;
  jemalloc::Mallctl mallctl = nullptr;
  PageCache pages;
  jemalloc::Geometry geometry{};

  alignas(64) Mutex lock;
  bool held_for_fork = false;
  // The brk heap: [break_start, break_end) is what the set was told. break_known is read without the lock.
  std::atomic<bool> break_known{false};
  uintptr_t break_start = 0, break_end = 0;
  IntervalSet set;

  Mutex reconciling;
  // /proc could not be opened: not tried again for each object. A hint, so relaxed.
  std::atomic<bool> no_proc{false};
  alignas(64) Mutex proc_lock;  // guards proc_buffer
  char proc_buffer[4096] = {};
};
extern State g_state;

constexpr uintptr_t page_floor(uintptr_t at) { return at & ~(kPageSize - 1); }
constexpr uintptr_t page_ceil(uintptr_t at) { return page_floor(at + kPageSize - 1); }

// Finds out where the brk heap begins, once. Without the lock.
void learn_break();
// Makes the set agree with the program break. Under the lock, so that the break read last wins.
void sync_break(Sink& sink);
// The heap of a further arena reaches to `heap.hi` now. Under the lock.
void sync_arena(Sink& sink, glibc::Range heap);

}  // namespace traceaf::emitter::spans
