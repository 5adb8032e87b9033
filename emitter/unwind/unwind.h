// The call stack of the current thread by the unwind tables (.eh_frame), without locks, allocation or libunwind.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emitter/wire/rows.h"

namespace traceaf::emitter::unwind {

// Register state of the function that called a wrapper, at the return from that call.
struct Start {
  uintptr_t ra;
  uintptr_t cfa;  // value of rsp after the return
  uintptr_t rbp;
};
inline Start start_of(const void* wrapper_frame) {
  const auto* words = static_cast<const uintptr_t*>(wrapper_frame);
  return {words[1], reinterpret_cast<uintptr_t>(words + 2), words[0]};
}

// Memory known to be readable for the whole walk: from the current stack pointer to the top of the thread's stack.
// {0, 0} when unknown. Outside it every page is probed before it is read.
struct Bounds {
  uintptr_t lo;
  uintptr_t hi;
};

struct Step {
  uintptr_t ra;     // return address (for an interrupted frame: the interrupted pc itself)
  uint32_t module;  // emitter/modules.h id, 0 for code outside every ELF object
  uint32_t flags;   // kInterrupted, kGuessed
};
// kGuessed: reached over code without unwind tables by its frame pointer; frames may be missing below it. The walk is
// kComplete all the same when it gets to the outermost frame.
enum : uint32_t { kInterrupted = 1, kGuessed = 2 };

// Writes the frames innermost first (out[0].ra == start.ra) into out[0, cap) and returns how many. `*end` says why the
// walk ended (kComplete: at the outermost frame).
uint32_t walk(const Start& start, const Bounds& bounds, Step* out, uint32_t cap, wire::NodeRoot* end);

// The program told the C++ runtime of the unwind tables at `section`, a .eh_frame up to its terminator, or takes them
// back. Both may be called twice for one section. Not in signal handlers.
void frames_registered(const void* section);
void frames_deregistered(const void* section);

// Cached rules are dropped (a library was unloaded).
void invalidate();

}  // namespace traceaf::emitter::unwind
