// Tables of code that no library brings along: JIT compilers tell the C++ runtime of them, and so us. The runtime's own
// function is always called as it would have been without us.
//
// The runtime may be loaded after us, or not at all: what is not known at the start is looked up at each call. Its
// __register_frame calls __register_frame_info, so one section may be told twice.
#include <atomic>

#include "emitter/unwind/unwind.h"
#include "preload/next.h"
#include "preload/real.h"
#include "preload/start.h"

namespace traceaf::preload {
namespace {

// Sections whose registration had nobody to go to. A runtime that is loaded later does not know them, and libgcc's
// aborts when it is asked to forget what it does not know. Set and cleared by compare-exchange on any thread; when all
// are in use the section is treated as one that the runtime knows.
constinit std::atomic<const void*> g_unknown_to_runtime[32] = {};

bool exchange_unknown(const void* from, const void* to) {
  for (auto& slot : g_unknown_to_runtime) {
    const void* expected = from;
    if (slot.compare_exchange_strong(expected, to, std::memory_order_relaxed)) return true;
  }
  return false;
}

template <typename F>
F* function_of(const Slot<F>& slot, Function id) {
  F* known = slot.at.load(std::memory_order_relaxed);
  return known != nullptr ? known : reinterpret_cast<F*>(find_loaded(id));
}

template <typename F, typename... A>
TRACEAF_PASSES_ON void registered(const Slot<F>& slot, Function id, const void* section, A... rest) {
  if (acts_for_process()) emitter::unwind::frames_registered(section);
  if (F* next = function_of(slot, id)) {
    next(section, rest...);
  } else {
    exchange_unknown(nullptr, section);
  }
}

template <typename F>
TRACEAF_PASSES_ON auto deregistered(const Slot<F>& slot, Function id, const void* section) {
  if (acts_for_process()) emitter::unwind::frames_deregistered(section);
  F* next = section != nullptr && exchange_unknown(section, nullptr) ? nullptr : function_of(slot, id);
  using Result = decltype(next(section));
  return next != nullptr ? next(section) : Result();
}

}  // namespace

TRACEAF_EXPORT void __register_frame(const void* section) {
  registered(next___register_frame, Function::k___register_frame, section);
}
TRACEAF_EXPORT void __register_frame_info(const void* section, void* object) {
  registered(next___register_frame_info, Function::k___register_frame_info, section, object);
}
TRACEAF_EXPORT void __deregister_frame(const void* section) {
  deregistered(next___deregister_frame, Function::k___deregister_frame, section);
}
TRACEAF_EXPORT void* __deregister_frame_info(const void* section) {
  return deregistered(next___deregister_frame_info, Function::k___deregister_frame_info, section);
}

}  // namespace traceaf::preload
