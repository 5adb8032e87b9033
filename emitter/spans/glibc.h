// What glibc's malloc says about a block in the header words before it. Only for live blocks of glibc's own malloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emitter/spans/maps.h"
#include "emitter/spans/page_cache.h"

namespace traceaf::emitter::spans::glibc {

struct Range {
  uintptr_t lo, hi;
};

inline constexpr uint64_t kIsMmapped = 2;
inline constexpr uint64_t kNonMainArena = 4;
inline constexpr uint64_t kFlags = 7;
// Alignment of the heaps of further arenas; the hugetlb tunable of glibc changes it, so what is found there is checked.
inline constexpr uintptr_t kHeapAlign = uintptr_t{64} << 20;

inline uint64_t word_at(uintptr_t at) {
  uint64_t word;
  memcpy(&word, reinterpret_cast<const void*>(at), sizeof word);
  return word;
}

inline uint64_t head(uintptr_t p) { return word_at(p - 8); }

// The mapping of a block with kIsMmapped. {0, 0} when the header makes no sense.
inline Range mapped_chunk(uintptr_t p, uint64_t head_word) {
  const uintptr_t chunk = p - 16;
  const uint64_t before = word_at(chunk);  // bytes of the mapping before the chunk (memalign)
  const uint64_t size = head_word & ~kFlags;
  const uintptr_t lo = (chunk - before) & ~(kPageSize - 1);
  const uintptr_t hi = (chunk + size + kPageSize - 1) & ~(kPageSize - 1);
  if (before > chunk || size < 16 || hi <= p) return {0, 0};
  return {lo, hi};
}

// Bytes in use of a heap by its heap_info (arena, previous heap, size, mprotect_size), or 0 when it cannot be one.
inline uint64_t checked_heap_size(const uint64_t (&info)[4]) {
  const uint64_t size = info[2];
  const uint64_t writable = info[3];
  const bool plausible = info[0] % 16 == 0 && info[0] != 0 && info[1] % kHeapAlign == 0 && size % kPageSize == 0 &&
                         writable % kPageSize == 0 && size <= writable && size != 0 && writable <= kHeapAlign;
  return plausible ? size : 0;
}

// The heap of a block with kNonMainArena. {0, 0} when there is none where it should be.
inline Range arena_heap(uintptr_t p) {
  const uintptr_t heap = p & ~(kHeapAlign - 1);
  if (!readable(heap)) return {0, 0};
  uint64_t info[4];
  memcpy(info, reinterpret_cast<const void*>(heap), sizeof info);
  const uint64_t size = checked_heap_size(info);
  if (size <= p - heap) return {0, 0};
  return {heap, heap + size};
}

}  // namespace traceaf::emitter::spans::glibc
