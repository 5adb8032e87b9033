// mmap and its kin. A mapping made while an allocator works (the call is inside a wrapper of the allocation family) is
// the allocator's; lengths are told in whole pages. (Huge pages: the kernel may round further; the flusher's look at
// /proc/self/maps puts that right.) Fixed mappings over others are for the span set to cut up.
#include <sys/mman.h>

#include "preload/nesting.h"
#include "preload/next.h"
#include "preload/start.h"

namespace traceaf::preload {

using wire::SpanSource;

namespace {

constexpr uintptr_t kPage = 4096;

size_t pages(size_t bytes) { return (bytes + kPage - 1) & ~(kPage - 1); }
bool at_page(const void* at) { return reinterpret_cast<uintptr_t>(at) % kPage == 0; }

SpanSource source_of(FramePointer frame, bool file) {
  if (place_of(frame) != Place::kOuter) return SpanSource::kAllocator;
  return file ? SpanSource::kMmapFile : SpanSource::kMmap;
}

void* mapped(FramePointer frame, void* at, size_t bytes, bool file) {
  if (at != MAP_FAILED) emitter::mapping_added(at, pages(bytes), source_of(frame, file));
  return at;
}

}  // namespace

TRACEAF_ON(void*, mmap, (void* at, size_t bytes, int protection, int flags, int fd, off_t offset)) {
  if (!recording()) return next_mmap(at, bytes, protection, flags, fd, offset);
  void* result = next_mmap(at, bytes, protection, flags, fd, offset);
  return mapped(TRACEAF_FRAME, result, bytes, (flags & MAP_ANONYMOUS) == 0);
}

TRACEAF_ON(void*, mmap64, (void* at, size_t bytes, int protection, int flags, int fd, off_t offset)) {
  if (!recording()) return next_mmap64(at, bytes, protection, flags, fd, offset);
  void* result = next_mmap64(at, bytes, protection, flags, fd, offset);
  return mapped(TRACEAF_FRAME, result, bytes, (flags & MAP_ANONYMOUS) == 0);
}

TRACEAF_ON(int, munmap, (void* at, size_t bytes)) {
  if (!recording() || bytes == 0 || !at_page(at)) return next_munmap(at, bytes);
  emitter::mapping_removing(at, pages(bytes));
  const int result = next_munmap(at, bytes);
  if (result != 0) emitter::mapping_restored(at, pages(bytes));
  return result;
}

TRACEAF_ON(void*, mremap, (void* old, size_t old_bytes, size_t bytes, int flags, void* at)) {
  if (!recording() || !at_page(old)) return next_mremap(old, old_bytes, bytes, flags, at);
  // Of length 0: a second view of a shared mapping. DONTUNMAP: the pages move away, the old range stays mapped.
  const bool leaves = old_bytes != 0 && (flags & MREMAP_DONTUNMAP) == 0;
  if (leaves) emitter::mapping_removing(old, pages(old_bytes));
  void* result = next_mremap(old, old_bytes, bytes, flags, at);
  if (result == MAP_FAILED && leaves) emitter::mapping_restored(old, pages(old_bytes));
  return mapped(TRACEAF_FRAME, result, bytes, false);
}

TRACEAF_ON(int, brk, (void* end)) {
  const bool told = recording();
  const int result = next_brk(end);
  if (told && result == 0) emitter::break_changed();
  return result;
}

TRACEAF_ON(void*, sbrk, (intptr_t change)) {
  const bool told = recording() && change != 0;
  void* result = next_sbrk(change);
  if (told && result != reinterpret_cast<void*>(-1)) emitter::break_changed();
  return result;
}

}  // namespace traceaf::preload
