// The debug guard (option guard=1): aborts when our own code allocates through the hooks.
//
// A birth on a thread that is inside the recorder has one of two causes: a signal handler of the program interrupted
// the recorder (allowed), or the recorder called something that allocates (our fault). The call stack decides: our
// fault is a return address in this library reached before any interrupted frame, but in no wrapper: those pass the
// program's calls on, as the operators do to malloc.
#pragma once

#include <atomic>

#include "preload/nesting.h"

namespace traceaf::preload {

extern std::atomic<bool> g_guard;  // copy of the option, for one relaxed load a birth

// Takes the option over from the recorder.
void refresh_guard();
// Aborts with one line when the birth in the wrapper `frame` is ours.
void check_guard(FramePointer frame);

[[gnu::always_inline]] inline void guard(FramePointer frame) {
  if (g_guard.load(std::memory_order_relaxed)) [[unlikely]]
    check_guard(frame);
}

}  // namespace traceaf::preload
