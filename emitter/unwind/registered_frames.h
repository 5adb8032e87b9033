// Unwind tables that the program registered (__register_frame) for code outside every ELF object, as JIT compilers do.
// They are copied when they are registered, so that a program that frees them early cannot make a walk fault. Walks
// take no lock and never wait.
//
// Nothing may be remembered of a step over such code: the rule cache leaves it out and the memo makes the step again.
// So a change need not raise the epoch, after which every thread would have to look at every library anew; compilers
// that register each function by itself change often.
#pragma once

#include <cstdint>

#include "emitter/unwind/memory.h"
#include "emitter/unwind/rule.h"

namespace traceaf::emitter::unwind {

// Whether a registered table covers the instruction at `pc`. If so `*outcome` says how the step to the caller went;
// `*regs` is changed only by kStepped, and `*signal_frame` says whether the caller was interrupted.
bool step_registered(uintptr_t pc, Registers* regs, Memory* memory, bool* signal_frame, Outcome* outcome);

// Code ranges that are known now.
uint32_t registered_ranges();

// In the child of a fork, where a thread that was registering is gone.
void registered_frames_after_fork();

}  // namespace traceaf::emitter::unwind
