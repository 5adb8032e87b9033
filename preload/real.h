// Finds the next definitions of all interposed functions and fills the slots (next.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "emitter/recorder.h"

namespace traceaf::preload {

enum class Function : uint8_t {
#define TRACEAF_FUNCTION(id, symbol, group, entry, presence, type, doc) k_##id,
#include "preload/functions.inc"
#undef TRACEAF_FUNCTION
};

inline constexpr size_t kFunctions = 0
#define TRACEAF_FUNCTION(id, symbol, group, entry, presence, type, doc) +1
#include "preload/functions.inc"
#undef TRACEAF_FUNCTION
    ;

// Code of the object that provides the next malloc, and of the one that provides the next operator new; empty when
// unknown. A wrapper that returns into them was called by an allocator.
struct CodeRange {
  std::atomic<uintptr_t> start;  // both stored before the slots that lead there, and only read for a choice of names
  std::atomic<uintptr_t> bytes;
  [[nodiscard]] bool contains(uintptr_t pc) const {
    return pc - start.load(std::memory_order_relaxed) < bytes.load(std::memory_order_relaxed);
  }
};
extern CodeRange g_allocator_code;
extern CodeRange g_operators_code;

enum class Resolved : uint8_t { kFailed, kYes, kOtherNamespace };

// Fills every slot. The allocation family comes from one object: the first behind ours that has malloc; what it lacks
// is made from what it has. (An object with malloc but without calloc, realloc or free is no allocator but a filter in
// front of one; there each function is the next in line, as the dynamic linker would have it.) Reads the loader's list
// without its lock, so it runs in start() only, when no other thread can be loading anything.
// kOtherNamespace: this copy of us was loaded by dlmopen or for an auditor; the slots are filled all the same.
Resolved resolve(emitter::NextAllocator* info);

// Definition of an operator in whatever object has it by now (of a library loaded since the start); kept for later
// calls. nullptr when there is none. Safe on any thread.
void* resolve_operator(Function id);
// Address of a function in whatever object has it by now, nullptr when none does. Nothing is kept.
void* find_loaded(Function id);
// After dlclose: operators of an object that may be gone are looked up again.
void recheck_operators();

// A block exists that the next allocator does not know: from now on functions that take one go through their wrappers.
void watch_blocks();

}  // namespace traceaf::preload
