// Which wrapper of this thread is the outermost: one block is one event however many wrappers it passes through.
//
// The outermost wrapper announces itself for the time of its real call: its frame, its return address, what it is
// about. A wrapper that finds another announced is inner when that one is still there, which is so when
//   - it lies above us on the stack and its return address is still in place, or
//   - we run on the signal stack (a handler that interrupted it).
// Otherwise the other one was left by longjmp, and its announcement is thrown away. A wrong answer costs the name of an
// entry point or an exact stack, never an event.
//
//   inner birth   may be the outer call's own block: kept back (the stash) when it fits, until the outer call returns;
//                 else recorded at once
//   inner death   of the block that the outer call frees or moves: the same event; any other is recorded
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "emitter/recorder.h"
#include "emitter/wire/entries.h"

namespace traceaf::preload {

using FramePointer = const uintptr_t*;

struct Nest {
  FramePointer frame;        // of the outer wrapper; null: none; quiet_mark(): nothing of this thread is recorded
  uintptr_t return_address;  // frame[1] when it was announced
  size_t size;               // bytes that the outer call asks for; SIZE_MAX: it is no birth
  const void* dying;         // block that the outer call frees or moves
  const void* stash;         // block of an inner birth that is not recorded yet
  size_t stash_size;
  const void* recorded;  // the last block of an inner birth that was recorded at once
  wire::Entry stash_entry;
  uint8_t stash_align_log2;  // 0: none asked for
  bool noted;                // stash or recorded is set
};
static_assert(sizeof(Nest) <= 64);

enum class Place : uint8_t { kOuter, kInner, kQuiet };

extern __thread Nest t_nest __attribute__((tls_model("initial-exec"), visibility("hidden")));

inline FramePointer quiet_mark() { return reinterpret_cast<FramePointer>(8); }
constexpr uintptr_t kNear = 65536;  // a frame this close above us lies on the same stack

// The parts that are rarely needed. `frame`: the wrapper that asks.
Place find_place(FramePointer frame);
void inner_birth(FramePointer frame, const void* p, size_t size, wire::Entry entry, size_t align);
void inner_death(FramePointer frame, const void* p);
// False when the outer call is the move of `old` itself. A move of its own is recorded by the caller, who then notes
// it.
bool inner_move(const void* old);
void note_recorded(const void* p);
// The outer call returned `p`, and an inner birth is noted. True when `p` has its event already.
bool settle(FramePointer frame, const void* p);
// Records a stashed block as an event of its own, with the stack of `frame` (its own wrapper has returned).
void flush_stash(FramePointer frame);

[[gnu::always_inline]] inline Place place_of(FramePointer frame) {
  const FramePointer outer = t_nest.frame;
  if (outer == nullptr) [[likely]]
    return Place::kOuter;
  const uintptr_t distance = reinterpret_cast<uintptr_t>(outer) - reinterpret_cast<uintptr_t>(frame);
  if (distance - 1 < kNear && outer[1] == t_nest.return_address) return Place::kInner;
  return find_place(frame);
}

// A signal handler may run between any two of these stores: what it reads is valid only behind a set `frame`.
[[gnu::always_inline]] inline void announce(FramePointer frame, size_t size, const void* dying) {
  Nest& nest = t_nest;
  nest.return_address = frame[1];
  nest.size = size;
  nest.dying = dying;
  nest.stash = nullptr;
  nest.recorded = nullptr;
  nest.noted = false;
  std::atomic_signal_fence(std::memory_order_release);
  nest.frame = frame;
  std::atomic_signal_fence(std::memory_order_release);
}

// True when an inner birth has to be settled.
[[gnu::always_inline]] inline bool retire(FramePointer frame) {
  Nest& nest = t_nest;
  std::atomic_signal_fence(std::memory_order_release);
  if (nest.frame != frame) [[unlikely]]
    return false;  // thrown away meanwhile: an exception, a jump
  nest.frame = nullptr;
  std::atomic_signal_fence(std::memory_order_release);
  return nest.noted;
}

}  // namespace traceaf::preload
