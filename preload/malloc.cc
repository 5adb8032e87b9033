// The allocation family of C. Each wrapper runs while recording is on; results, errno and arguments are the next
// allocator's own. Alignments are recorded as asked for, sizes too (pvalloc: before rounding).
#include "preload/calls.h"

namespace traceaf::preload {

using wire::Entry;

namespace {

constexpr size_t kPage = 4096;

// count * size, or SIZE_MAX where that overflows (the real call then fails).
size_t product(size_t count, size_t size) {
  size_t bytes = 0;
  return __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes;
}

// realloc of a block that the next allocator does not know: an ordinary birth with its contents.
[[gnu::always_inline]] inline void* move_out(FramePointer frame, void* old, size_t size, Entry entry) {
  if (size == 0) {
    bootstrap::give_back(old);
    return nullptr;
  }
  if (size <= bootstrap::size_of(old)) return old;
  if (!recording()) return bootstrap::copy_out(next_malloc(size), old, size);
  Birth call(frame, size);
  return bootstrap::copy_out(call.done(next_malloc(size), size, entry), old, size);
}

}  // namespace

TRACEAF_ON(void*, malloc, (size_t size)) {
  if (!recording()) return next_malloc(size);
  Birth call(TRACEAF_FRAME, size);
  void* cell = call.quiet() ? bootstrap::cell(size) : nullptr;
  return call.done(cell != nullptr ? cell : next_malloc(size), size, Entry::k_malloc);
}

TRACEAF_ON(void*, calloc, (size_t count, size_t size)) {
  if (!recording()) return next_calloc(count, size);
  const size_t bytes = product(count, size);
  Birth call(TRACEAF_FRAME, bytes);
  void* cell = call.quiet() ? bootstrap::cell(bytes) : nullptr;
  if (cell != nullptr) return __builtin_memset(cell, 0, bytes);
  return call.done(next_calloc(count, size), bytes, Entry::k_calloc);
}

TRACEAF_ON(void*, realloc, (void* old, size_t size)) {
  if (bootstrap::owns(old)) return move_out(TRACEAF_FRAME, old, size, Entry::k_realloc_new);
  if (!recording()) return next_realloc(old, size);
  if (old == nullptr) {
    Birth call(TRACEAF_FRAME, size);
    void* cell = call.quiet() ? bootstrap::cell(size) : nullptr;
    return call.done(cell != nullptr ? cell : next_realloc(old, size), size, Entry::k_realloc_new);
  }
  Moving call(TRACEAF_FRAME, old, size);
  return call.done(next_realloc(old, size), size, Entry::k_realloc);
}

TRACEAF_ON(void*, reallocarray, (void* old, size_t count, size_t size)) {
  const size_t bytes = product(count, size);
  if (bootstrap::owns(old)) return move_out(TRACEAF_FRAME, old, bytes, Entry::k_reallocarray_new);
  if (!recording()) return next_reallocarray(old, count, size);
  if (old == nullptr) {
    Birth call(TRACEAF_FRAME, bytes);
    return call.done(next_reallocarray(old, count, size), bytes, Entry::k_reallocarray_new);
  }
  Moving call(TRACEAF_FRAME, old, bytes);
  return call.done(next_reallocarray(old, count, size), bytes, Entry::k_reallocarray);
}

TRACEAF_ON(void, free, (void* p)) {
  if (took_back(p)) return;
  if (p == nullptr || !recording()) return next_free(p);
  const Death call(TRACEAF_FRAME, p);
  next_free(p);
}

TRACEAF_ON(void, free_sized, (void* p, size_t size)) {
  if (took_back(p)) return;
  if (p == nullptr || !recording()) return next_free_sized(p, size);
  const Death call(TRACEAF_FRAME, p);
  next_free_sized(p, size);
}

TRACEAF_ON(void, free_aligned_sized, (void* p, size_t align, size_t size)) {
  if (took_back(p)) return;
  if (p == nullptr || !recording()) return next_free_aligned_sized(p, align, size);
  const Death call(TRACEAF_FRAME, p);
  next_free_aligned_sized(p, align, size);
}

TRACEAF_ON(int, posix_memalign, (void** out, size_t align, size_t size)) {
  if (!recording()) return next_posix_memalign(out, align, size);
  Birth call(TRACEAF_FRAME, size);
  const int error = next_posix_memalign(out, align, size);
  void* p = call.done(error == 0 ? *out : nullptr, size, Entry::k_posix_memalign, align);
  if (error == 0) *out = broken::shifted(p);
  return error;
}

TRACEAF_ON(void*, aligned_alloc, (size_t align, size_t size)) {
  if (!recording()) return next_aligned_alloc(align, size);
  Birth call(TRACEAF_FRAME, size);
  return broken::shifted(call.done(next_aligned_alloc(align, size), size, Entry::k_aligned_alloc, align));
}

TRACEAF_ON(void*, memalign, (size_t align, size_t size)) {
  if (!recording()) return next_memalign(align, size);
  Birth call(TRACEAF_FRAME, size);
  return broken::shifted(call.done(next_memalign(align, size), size, Entry::k_memalign, align));
}

TRACEAF_ON(void*, valloc, (size_t size)) {
  if (!recording()) return next_valloc(size);
  Birth call(TRACEAF_FRAME, size);
  return call.done(next_valloc(size), size, Entry::k_valloc, kPage);
}

TRACEAF_ON(void*, pvalloc, (size_t size)) {
  if (!recording()) return next_pvalloc(size);
  Birth call(TRACEAF_FRAME, size);
  return call.done(next_pvalloc(size), size, Entry::k_pvalloc, kPage);
}

TRACEAF_ON(size_t, malloc_usable_size, (void* p)) {
  if (bootstrap::owns(p)) return bootstrap::size_of(p);
  recording();  // for its start
  return next_malloc_usable_size(p);
}

}  // namespace traceaf::preload
