// The replaceable operators new and delete, under their mangled names with C linkage. Forms that libstdc++ builds on
// each other (new[] on new on malloc) stay one event (nesting.h).
//
// An exception may pass through an operator new: bad_alloc, or what a new_handler throws. The wrapper cannot catch it
// without libstdc++, so it names a personality routine of its own, which the unwinder calls while it takes the
// wrapper's frame down and which withdraws the announcement. It lets the exception go on in any case.
#include "preload/calls.h"

namespace traceaf::preload {

using wire::Entry;

extern "C" __attribute__((visibility("hidden"), used)) int taf_new_personality(int version, int actions, uint64_t,
                                                                               void*, void*) {
  constexpr int kCleanupPhase = 2;
  constexpr int kContinueUnwind = 8;
  Nest& nest = t_nest;
  const FramePointer outer = nest.frame;
  if ((actions & kCleanupPhase) != 0 && outer != nullptr && outer != quiet_mark()) {
    if (retire(outer)) settle(outer, nullptr);
  }
  return kContinueUnwind;
}

// First statement of a wrapper that an exception may pass through.
#define TRACEAF_EXCEPTION_PASSES asm volatile(".cfi_personality 0x1b, taf_new_personality")

#define TRACEAF_NEW(id, parameters, arguments, align)                  \
  TRACEAF_ON(void*, id, parameters) {                                  \
    TRACEAF_EXCEPTION_PASSES;                                          \
    if (!recording()) return next_##id arguments;                      \
    Birth call(TRACEAF_FRAME, size);                                   \
    return call.done(next_##id arguments, size, Entry::k_##id, align); \
  }

TRACEAF_NEW(new_, (size_t size), (size), 0)
TRACEAF_NEW(new_array, (size_t size), (size), 0)
TRACEAF_NEW(new_nothrow, (size_t size, const void* tag), (size, tag), 0)
TRACEAF_NEW(new_array_nothrow, (size_t size, const void* tag), (size, tag), 0)
TRACEAF_NEW(new_aligned, (size_t size, size_t align), (size, align), align)
TRACEAF_NEW(new_array_aligned, (size_t size, size_t align), (size, align), align)
TRACEAF_NEW(new_aligned_nothrow, (size_t size, size_t align, const void* tag), (size, align, tag), align)
TRACEAF_NEW(new_array_aligned_nothrow, (size_t size, size_t align, const void* tag), (size, align, tag), align)

#define TRACEAF_DELETE(id, parameters, arguments)                 \
  TRACEAF_ON(void, id, parameters) {                              \
    if (took_back(p)) return;                                     \
    if (p == nullptr || !recording()) return next_##id arguments; \
    const Death call(TRACEAF_FRAME, p);                           \
    next_##id arguments;                                          \
  }

TRACEAF_DELETE(delete_, (void* p), (p))
TRACEAF_DELETE(delete_array, (void* p), (p))
TRACEAF_DELETE(delete_sized, (void* p, size_t size), (p, size))
TRACEAF_DELETE(delete_array_sized, (void* p, size_t size), (p, size))
TRACEAF_DELETE(delete_nothrow, (void* p, const void* tag), (p, tag))
TRACEAF_DELETE(delete_array_nothrow, (void* p, const void* tag), (p, tag))
TRACEAF_DELETE(delete_aligned, (void* p, size_t align), (p, align))
TRACEAF_DELETE(delete_array_aligned, (void* p, size_t align), (p, align))
TRACEAF_DELETE(delete_sized_aligned, (void* p, size_t size, size_t align), (p, size, align))
TRACEAF_DELETE(delete_array_sized_aligned, (void* p, size_t size, size_t align), (p, size, align))
TRACEAF_DELETE(delete_aligned_nothrow, (void* p, size_t align, const void* tag), (p, align, tag))
TRACEAF_DELETE(delete_array_aligned_nothrow, (void* p, size_t align, const void* tag), (p, align, tag))

}  // namespace traceaf::preload
