// jemalloc's size classes, and the slab of a small object by arithmetic: a slab is as long as the least common multiple
// of page and region size, so exactly one page boundary at or below an object is a whole number of regions away from it
// within one slab's length. Wrong when slabs have custom sizes or when objects are promoted for heap profiling, so both
// are ruled out.
#pragma once

#include <cstddef>
#include <cstdint>

namespace traceaf::emitter::spans::jemalloc {

using Mallctl = int (*)(const char*, void*, size_t*, void*, size_t);

struct Bin {
  uint32_t size;
  uint32_t slab_bytes;
  uint32_t inverse;  // 2^32 / size, rounded up

  // Whether an object can begin `offset` bytes into a slab. Exact: offset * size < 2^32.
  bool boundary(uint32_t offset) const {
    return offset < slab_bytes && static_cast<uint32_t>(uint64_t{offset} * inverse >> 32) * size == offset;
  }
};

struct Geometry {
  static constexpr unsigned kMaxBins = 64;
  static constexpr uint32_t kMaxSmall = 16384;
  static constexpr uint32_t kMaxSlab = 131072;
  uint32_t bins;
  uint32_t small_max;  // largest usable size of a small object
  uint32_t pad;        // bytes that a large extent has beyond the usable size
  Bin bin[kMaxBins];
  uint8_t bin_of[kMaxSmall / 8 + 1];  // by usable size / 8

  // Index of the size class whose usable size is `usable`, or -1: a large object (or no small class at all).
  int index(size_t usable) const {
    if (usable == 0 || usable > small_max) return -1;
    const unsigned i = bin_of[(usable + 7) / 8];
    return bin[i].size == usable ? static_cast<int>(i) : -1;
  }
};

// Asks the allocator. It may allocate meanwhile, so no lock may be held. False when slabs cannot be computed.
bool read(Mallctl mallctl, Geometry* geometry);
// Base of the slab that holds the object at `p`, or 0 when `p` is not where an object of this class can begin.
uintptr_t slab_base(const Bin& bin, uintptr_t p);

}  // namespace traceaf::emitter::spans::jemalloc
