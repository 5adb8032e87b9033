// The slots of the next definitions: for each row of functions.inc next_<id>, which calls what would have been called
// without us. Filled by start() and, for operators of a library loaded later, by resolve_operators().
#pragma once

#include <pthread.h>
#include <sys/types.h>
#include <threads.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace traceaf::preload {

// Who else touches `at`: start() stores before the gate opens, on the only thread that exists then; the operators'
// slots may be stored later by any thread, each store being a valid function, so relaxed order is enough.
template <typename Function>
struct Slot {
  std::atomic<Function*> at;
  template <typename... A>
  [[gnu::always_inline]] auto operator()(A... arguments) const {
    return at.load(std::memory_order_relaxed)(arguments...);
  }
};

#define TRACEAF_FUNCTION(id, symbol, group, entry, presence, type, doc) \
  extern __attribute__((visibility("hidden"))) Slot<type> next_##id;
#include "preload/functions.inc"
#undef TRACEAF_FUNCTION

// Where the exported name of a gated function goes while recording is off: the next definition, or taf_on_<id> while
// the next one is unknown or blocks exist that are not its own (see bootstrap.h). Read by entries.cc as taf_off_<id>.
using AnyFunction = void();
#define TRACEAF_FUNCTION(id, symbol, group, entry, presence, type, doc) TRACEAF_OFF_##entry(id)
#define TRACEAF_OFF_gated(id) \
  extern __attribute__((visibility("hidden"))) std::atomic<AnyFunction*> off_##id asm("taf_off_" #id);
#define TRACEAF_OFF_always(id)
#include "preload/functions.inc"
#undef TRACEAF_FUNCTION
#undef TRACEAF_OFF_gated
#undef TRACEAF_OFF_always

}  // namespace traceaf::preload

// Code that passes a call of the program on: whatever allocates behind it does so for the program. In a section of its
// own, whose bounds the guard compares.
#define TRACEAF_PASSES_ON __attribute__((section("taf_wrappers")))

// Declares the wrapper of a gated function, reached from the exported name while the gate is not "off".
#define TRACEAF_ON(result, id, parameters)                                                                  \
  extern "C" __attribute__((visibility("hidden"), noinline)) result taf_on_##id parameters noexcept(false); \
  TRACEAF_PASSES_ON result taf_on_##id parameters

// Defines an exported function under its own name.
#define TRACEAF_EXPORT extern "C" __attribute__((visibility("default"))) TRACEAF_PASSES_ON

// The wrapper's own frame, see recorder.h.
#define TRACEAF_FRAME static_cast<const uintptr_t*>(__builtin_frame_address(0))
