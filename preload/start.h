// The start of everything, at the first hooked call or in our constructor, whichever comes first; and the question each
// wrapper asks first.
//
// The first call may come from the dynamic linker, before any constructor and before libc is set up, so nothing here
// needs libc: arguments and environment are read from the stack that the kernel made. No second thread exists then, and
// signals are blocked while the slots are filled; a call that finds that going on all the same gets bootstrap memory.
#pragma once

#include <cstdint>

#include "emitter/recorder.h"

namespace traceaf::preload {

// Starts unless another call has begun to. Returns whether calls are recorded now.
bool start();

// True when the wrapper has something to record: recording is on or in standby.
[[gnu::always_inline]] inline bool recording() {
  const uint32_t gate = emitter::gate();
  if (gate == emitter::kGateUninitialised) [[unlikely]]
    return start();
  return gate != emitter::kGateOff;
}

// For wrappers that have to do something even while recording is off: starts if need be and says whether this process
// image is ours to act for. False in a vfork child, in a child that no handler of ours has seen, and in a copy of this
// library in another namespace.
bool acts_for_process();

}  // namespace traceaf::preload
