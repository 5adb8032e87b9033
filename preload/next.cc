// First values of the slots: what a call does before the next definitions are known. An allocation comes from the
// bootstrap pool, an operator looks for its definition, anything else cannot be called so early (see start.h).
#include "preload/next.h"

#include "preload/bootstrap.h"
#include "preload/real.h"

namespace traceaf::preload {
namespace {

// Without any C++ library in the process the operators are malloc and free; the throwing forms cannot throw.
void* or_abort(void* p) { return p != nullptr ? p : (__builtin_trap(), nullptr); }
void* without_library(size_t size) { return or_abort(next_malloc(size)); }
void* without_library(size_t size, const void* nothrow) { return next_malloc(size); }
void* without_library(size_t size, size_t align) { return or_abort(next_memalign(align, size)); }
void* without_library(size_t size, size_t align, const void* nothrow) { return next_memalign(align, size); }
template <typename... Ignored>
void without_library(void* block, Ignored... ignored) {
  next_free(block);
}

// An operator whose definition was not loaded at the start of the process: looked up at each call until it is found.
template <Function id, typename Type>
struct Late;
template <Function id, typename Result, typename... A>
struct Late<id, Result(A...)> {
  TRACEAF_PASSES_ON static Result call(A... arguments) {
    auto* found = reinterpret_cast<Result (*)(A...)>(resolve_operator(id));
    return found != nullptr ? found(arguments...) : without_library(arguments...);
  }
};

}  // namespace

#define TRACEAF_FIRST_allocation(id, type) &bootstrap::id
#define TRACEAF_FIRST_operators(id, type) (&Late<Function::k_##id, type>::call)
#define TRACEAF_FIRST_mapping(id, type) nullptr
#define TRACEAF_FIRST_threads(id, type) nullptr
#define TRACEAF_FIRST_environment(id, type) nullptr
#define TRACEAF_FIRST_process(id, type) nullptr
#define TRACEAF_FIRST_loader(id, type) nullptr
#define TRACEAF_FUNCTION(id, symbol, group, entry, presence, type, doc) \
  constinit Slot<type> next_##id{{TRACEAF_FIRST_##group(id, type)}};
#include "preload/functions.inc"
#undef TRACEAF_FUNCTION

#define TRACEAF_OFF_gated(id)    \
  extern "C" void taf_on_##id(); \
  constinit std::atomic<AnyFunction*> off_##id{&taf_on_##id};
#define TRACEAF_OFF_always(id)
#define TRACEAF_FUNCTION(id, symbol, group, entry, presence, type, doc) TRACEAF_OFF_##entry(id)
#include "preload/functions.inc"
#undef TRACEAF_FUNCTION

void forget_operators() {
#define TRACEAF_FORGET_operators(id, type)                 \
  off_##id.store(&taf_on_##id, std::memory_order_relaxed); \
  next_##id.at.store(TRACEAF_FIRST_operators(id, type), std::memory_order_relaxed);
#define TRACEAF_FORGET_allocation(id, type)
#define TRACEAF_FORGET_mapping(id, type)
#define TRACEAF_FORGET_threads(id, type)
#define TRACEAF_FORGET_environment(id, type)
#define TRACEAF_FORGET_process(id, type)
#define TRACEAF_FORGET_loader(id, type)
#define TRACEAF_FUNCTION(id, symbol, group, entry, presence, type, doc) TRACEAF_FORGET_##group(id, type)
#include "preload/functions.inc"
#undef TRACEAF_FUNCTION
}

}  // namespace traceaf::preload
