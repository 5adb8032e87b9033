// Call frame information of one code address from .eh_frame, reduced to the registers that walking needs.
#pragma once

#include <cstdint>

#include "emitter/unwind/eh_frame.h"
#include "emitter/unwind/expression.h"
#include "emitter/unwind/module_record.h"
#include "emitter/unwind/rule.h"

namespace traceaf::emitter::unwind {

// Where the caller's value of a register is. Zero means that nothing was said.
enum class Save : uint8_t {
  kUnset = 0,
  kUndefined,
  kSame,
  kAtCfa,         // in memory at CFA + value
  kCfaPlus,       // is CFA + value
  kRegister,      // is in register `number`
  kAtExpression,  // in memory at the result of the expression (CFA on its stack)
  kExpression,    // is the result of the expression
  kRegisterPlus   // for the CFA alone: register `number` + value
};

struct SaveRule {
  Save save = Save::kUnset;
  uint16_t number = 0;  // register, or bytes of the expression
  int32_t value = 0;    // offset in bytes; of an expression: from Row::expressions
};

struct Row {
  SaveRule cfa, bp, sp, ra;
  bool signal_frame = false;  // the caller was interrupted, not calling
  uintptr_t expressions = 0;
  uintptr_t begin = 0;  // of the function
};

// The row that holds for the instruction at `pc` of `module`. False when no table describes it or the table is
// malformed.
bool find_row(const ModuleRecord& module, uintptr_t pc, Row* row);

// The same of a description that covers `pc`.
bool find_row(const Description& description, uintptr_t pc, Row* row);

// The row as a cacheable rule; Kind::kSlow when it does not fit.
Rule pack(const Row& row, uint32_t module);

// The caller's registers by `row`.
Outcome apply(const Row& row, Memory* memory, Registers* regs);

}  // namespace traceaf::emitter::unwind
