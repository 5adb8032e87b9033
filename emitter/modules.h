// The ELF objects that code addresses belong to, each with an id that is never reused in this process image: a library
// unloaded and another loaded at the same address have two ids. Filled on first sight of an address (from the
// loader's lock-free _dl_find_object); no lock of the loader is taken.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace traceaf::emitter {

struct Module {
  uint32_t id;     // from 1; 0 means "no module"
  uint32_t flags;  // wire::kModule*
  uintptr_t start, end;
  uintptr_t bias;
  uint8_t build_id[32];
  uint32_t build_id_bytes;
  uint32_t path_bytes;
  const char* path;                      // absolute where known
  std::atomic<uint64_t> row_generation;  // generation in which its row was last written (the recorder's)
};

// Id of the module that holds `pc`, adding it when it is new; 0 when no ELF object holds it. Lock-free except when a
// module is new. Safe for any address; reads only memory of a module that holds `pc`.
uint32_t module_of(uintptr_t pc);
// nullptr for 0 or an unknown id.
Module* module_by_id(uint32_t id);
uint32_t module_count();
// The loader's list may have changed: every module is checked again at its next use. Rises with each call.
void modules_invalidate();
uint64_t modules_epoch();
// Around dlclose, each with a modules_invalidate of its own: in between no cached fact about code is trusted, because
// the loader may already have put another object at the place of the one that goes. They may nest and overlap.
void modules_unload_begin();
void modules_unload_end();
// For the child of a fork or a new session of the same image: forgets which rows were written, nothing else.
void modules_after_fork();

}  // namespace traceaf::emitter
