// DWARF expressions of call frame information over the registers that walking knows.
#pragma once

#include "emitter/unwind/bytes.h"
#include "emitter/unwind/memory.h"
#include "emitter/unwind/rule.h"

namespace traceaf::emitter::unwind {

// DWARF numbers of the registers that are known.
enum : uint64_t { kDwarfRbp = 6, kDwarfRsp = 7, kDwarfRip = 16 };

// Value of register `number` in `regs`; false when it is not one of the known.
bool known_register(uint64_t number, const Registers& regs, uintptr_t* value);

// Evaluates `code`, the stack holding `*initial` at the start unless that is nullptr. kStepped: *result is the top of
// the stack. kNoCfi: malformed, endless, or in need of another register. kUnreadable: memory that cannot be read.
Outcome evaluate(Bytes code, const uintptr_t* initial, const Registers& regs, Memory* memory, uintptr_t* result);

}  // namespace traceaf::emitter::unwind
