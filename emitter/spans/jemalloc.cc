// Size classes of jemalloc by mallctl, slab arithmetic (see jemalloc.h).
#include "emitter/spans/jemalloc.h"

#include <cerrno>
#include <cstring>

#include "emitter/spans/page_cache.h"

namespace traceaf::emitter::spans::jemalloc {

namespace {

template <typename T>
bool get(Mallctl mallctl, const char* name, T* value) {
  size_t bytes = sizeof *value;
  return mallctl(name, value, &bytes, nullptr, 0) == 0 && bytes == sizeof *value;
}

// False also when this build does not know the option.
bool is_set(Mallctl mallctl, const char* name) {
  bool value = false;
  return get(mallctl, name, &value) && value;
}

// "arenas.bin.<index>.<leaf>"
void bin_name(char (&name)[48], unsigned index, const char* leaf) {
  constexpr char kPrefix[] = "arenas.bin.";
  memcpy(name, kPrefix, sizeof kPrefix - 1);
  char* at = name + sizeof kPrefix - 1;
  if (index >= 10) *at++ = static_cast<char>('0' + index / 10);
  *at++ = static_cast<char>('0' + index % 10);
  *at++ = '.';
  memcpy(at, leaf, strlen(leaf) + 1);
}

bool read_bin(Mallctl mallctl, unsigned index, Bin* bin) {
  char name[48];
  size_t size = 0;
  size_t slab = 0;
  uint32_t regions = 0;
  bin_name(name, index, "size");
  if (!get(mallctl, name, &size)) return false;
  bin_name(name, index, "slab_size");
  if (!get(mallctl, name, &slab)) return false;
  bin_name(name, index, "nregs");
  if (!get(mallctl, name, &regions)) return false;
  if (size == 0 || size % 8 != 0 || size > Geometry::kMaxSmall) return false;
  const size_t two = size & ~(size - 1);  // power of two in `size`
  const size_t common = two < kPageSize ? two : kPageSize;
  if (slab != kPageSize / common * size || slab != regions * size) return false;
  if (slab > Geometry::kMaxSlab) return false;
  *bin = {static_cast<uint32_t>(size), static_cast<uint32_t>(slab),
          static_cast<uint32_t>(((uint64_t{1} << 32) + size - 1) / size)};
  return true;
}

bool read_all(Mallctl mallctl, Geometry* geometry) {
  size_t page = 0;
  unsigned bins = 0;
  if (!get(mallctl, "arenas.page", &page) || page != kPageSize) return false;
  if (!get(mallctl, "arenas.nbins", &bins) || bins == 0 || bins > Geometry::kMaxBins) return false;
  if (is_set(mallctl, "opt.prof")) return false;
  uint32_t filled = 0;  // entries of bin_of
  for (unsigned i = 0; i < bins; ++i) {
    if (!read_bin(mallctl, i, &geometry->bin[i])) return false;
    const uint32_t size = geometry->bin[i].size;
    if (size / 8 < filled) return false;
    for (; filled <= size / 8; ++filled) geometry->bin_of[filled] = static_cast<uint8_t>(i);
  }
  geometry->bins = bins;
  geometry->small_max = geometry->bin[bins - 1].size;
  // An option since 5.3, fixed when built before.
  bool oblivious = false;
  if (!get(mallctl, "opt.cache_oblivious", &oblivious)) get(mallctl, "config.cache_oblivious", &oblivious);
  geometry->pad = oblivious ? static_cast<uint32_t>(kPageSize) : 0;
  return true;
}

}  // namespace

bool read(Mallctl mallctl, Geometry* geometry) {
  const int kept = errno;
  const bool ok = read_all(mallctl, geometry);
  errno = kept;
  return ok;
}

uintptr_t slab_base(const Bin& bin, uintptr_t p) {
  uintptr_t base = p & ~(kPageSize - 1);
  for (uint32_t back = 0; back < bin.slab_bytes; back += kPageSize, base -= kPageSize) {
    if (bin.boundary(static_cast<uint32_t>(p - base))) return base;
  }
  return 0;
}

}  // namespace traceaf::emitter::spans::jemalloc
