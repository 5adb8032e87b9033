// The entries of .eh_frame: which frame description covers an address, and where its instructions are.
#pragma once

#include <cstdint>

#include "emitter/unwind/module_record.h"

namespace traceaf::emitter::unwind {

// Instructions [at, end) of an entry.
struct Program {
  const uint8_t* at;
  const uint8_t* end;
};

// A frame description with what its common information entry adds. Kept small: it lies on the program's stack.
struct Description {
  Program initial;       // of the common entry
  Program instructions;  // of this description
  uintptr_t begin;       // first code address covered
  uint32_t code_align;
  int32_t data_align;
  uint8_t ra_register;
  uint8_t encoding;  // DW_EH_PE_* of code addresses
  bool has_augmentation_data;
  bool signal_frame;
};

// False when nothing covers `pc` or the section is malformed.
bool find_description(const ModuleRecord& module, uintptr_t pc, Description* description);

// Reads the entry at `at`: true when it is the description of some code, of `*bytes` bytes from out->begin. `*next` is
// the entry behind it, 0 at the end of the section or where it is malformed.
bool read_entry(const ModuleRecord& module, uintptr_t at, Description* out, uintptr_t* bytes, uintptr_t* next);

// A pointer stored by the DW_EH_PE_* `encoding`; `in` fails where it is none that an executable image uses for code.
uintptr_t read_encoded(Bytes* in, uint8_t encoding, uintptr_t data_base);

}  // namespace traceaf::emitter::unwind
