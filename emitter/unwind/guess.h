// Code without unwind tables: what its bytes and its frame pointer say.
#pragma once

#include "emitter/unwind/memory.h"
#include "emitter/unwind/rule.h"

namespace traceaf::emitter::unwind {

// Whether a call instruction ends right before `ra`: in code of an ELF object, or in readable memory of none, which may
// be generated code.
bool follows_call(uintptr_t ra, Memory* memory);

// Believes the frame pointer where it leads up the stack to the return address of a call. A function that did not set
// one up is its caller's, which this then leaves out; such steps are marked kGuessed. kStepped or kNoCfi. The stack
// pointer rises with each step, so a chain of them ends.
Outcome guess(Registers* regs, Memory* memory);

}  // namespace traceaf::emitter::unwind
