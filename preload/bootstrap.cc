// The pool, the cells, and blocks mapped alone when the pool is used up (see bootstrap.h).
#include "preload/bootstrap.h"

#include <cerrno>
#include <cstring>

#include "emitter/sys.h"
#include "preload/real.h"

namespace traceaf::preload::bootstrap {

constinit Arena g_arena{};
constinit std::atomic<bool> g_extended{false};

namespace {

constexpr size_t kPage = 4096;
// In front of each block of the pool and of each block mapped alone.
struct Header {
  size_t bytes;
  size_t pad;
};
static_assert(sizeof(Header) == 16);

constinit std::atomic<size_t> g_used{0};     // of the pool; only rises
constinit std::atomic<uint64_t> g_cells{0};  // bit i: cell i is in use
constinit std::atomic<uint64_t> g_served{0};

// Blocks mapped alone. A full table means failure: 64 of them while starting means something is badly wrong.
struct Extent {
  std::atomic<uintptr_t> lo;
  std::atomic<size_t> bytes;
};
constexpr size_t kExtents = 64;
constinit Extent g_extents[kExtents]{};
constinit std::atomic<size_t> g_extent_count{0};

bool in_cells(const void* p) {
  return reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(g_arena.cells) < sizeof(g_arena.cells);
}

void* place(uintptr_t from, size_t align, size_t size) {
  const uintptr_t at = (from + sizeof(Header) + align - 1) & ~(align - 1);
  reinterpret_cast<Header*>(at)[-1].bytes = size;
  return reinterpret_cast<void*>(at);
}

void* map_alone(size_t align, size_t size) {
  const size_t bytes = (size + align + sizeof(Header) + kPage - 1) & ~(kPage - 1);
  const size_t slot = g_extent_count.fetch_add(1, std::memory_order_relaxed);
  void* at = slot < kExtents ? emitter::sys::map(bytes) : nullptr;
  if (at == nullptr) return nullptr;
  g_extents[slot].bytes.store(bytes, std::memory_order_relaxed);
  g_extents[slot].lo.store(reinterpret_cast<uintptr_t>(at), std::memory_order_release);
  g_extended.store(true, std::memory_order_release);
  return place(reinterpret_cast<uintptr_t>(at), align, size);
}

// Zeroed memory; nullptr with ENOMEM when there is none.
void* take(size_t align, size_t size) {
  void* p = nullptr;
  if (align < sizeof(Header)) align = sizeof(Header);
  if (size < SIZE_MAX / 4 && align < SIZE_MAX / 4 && (align & (align - 1)) == 0) {
    const size_t room = size + align + sizeof(Header);
    size_t used = g_used.load(std::memory_order_relaxed);
    while (room <= kPoolBytes - used && !g_used.compare_exchange_weak(used, used + room, std::memory_order_relaxed)) {
    }
    p = room <= kPoolBytes - used ? place(reinterpret_cast<uintptr_t>(g_arena.pool) + used, align, size)
                                  : map_alone(align, size);
  }
  if (p == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  g_served.fetch_add(1, std::memory_order_relaxed);
  watch_blocks();
  return p;
}

}  // namespace

bool owns_extended(const void* p) {
  for (const Extent& extent : g_extents) {
    const uintptr_t lo = extent.lo.load(std::memory_order_acquire);  // pairs with map_alone: `bytes` is set
    if (lo == 0) continue;
    if (reinterpret_cast<uintptr_t>(p) - lo < extent.bytes.load(std::memory_order_relaxed)) return true;
  }
  return false;
}

size_t size_of(const void* p) { return in_cells(p) ? kCellBytes : static_cast<const Header*>(p)[-1].bytes; }

void give_back(void* p) {
  if (!in_cells(p)) return;
  const size_t index = static_cast<size_t>(static_cast<uint8_t*>(p) - g_arena.cells[0]) / kCellBytes;
  g_cells.fetch_and(~(uint64_t{1} << index), std::memory_order_release);  // pairs with cell(): its bytes are free
}

void* copy_out(void* fresh, void* old, size_t bytes) {
  if (fresh == nullptr) return nullptr;
  const size_t have = size_of(old);
  memcpy(fresh, old, have < bytes ? have : bytes);
  give_back(old);
  return fresh;
}

void* cell(size_t bytes) {
  if (bytes > kCellBytes) return nullptr;
  uint64_t used = g_cells.load(std::memory_order_relaxed);
  while (~used != 0) {
    const auto index = static_cast<size_t>(__builtin_ctzll(~used));
    if (!g_cells.compare_exchange_weak(used, used | uint64_t{1} << index, std::memory_order_acquire)) continue;
    watch_blocks();
    return g_arena.cells[index];
  }
  return nullptr;
}

uint64_t served() { return g_served.load(std::memory_order_relaxed); }

void* malloc(size_t size) { return take(1, size); }
void* memalign(size_t align, size_t size) { return take(align, size); }
void* aligned_alloc(size_t align, size_t size) { return take(align, size); }
void* valloc(size_t size) { return take(kPage, size); }
void* pvalloc(size_t size) { return take(kPage, (size + kPage - 1) & ~(kPage - 1)); }
void* calloc(size_t count, size_t size) {
  size_t bytes = 0;
  return take(1, __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes);
}
int posix_memalign(void** out, size_t align, size_t size) {
  if (align < sizeof(void*) || (align & (align - 1)) != 0) return EINVAL;
  const int before = errno;
  void* p = take(align, size);
  errno = before;
  if (p == nullptr) return ENOMEM;
  *out = p;
  return 0;
}
void* realloc(void* p, size_t size) {
  if (p == nullptr) return take(1, size);
  errno = ENOMEM;
  return nullptr;
}
void* reallocarray(void* p, size_t count, size_t size) {
  size_t bytes = 0;
  return realloc(p, __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes);
}
void free(void* p) {}
void free_sized(void* p, size_t size) {}
void free_aligned_sized(void* p, size_t align, size_t size) {}
size_t malloc_usable_size(void* p) { return 0; }

}  // namespace traceaf::preload::bootstrap
