// Memory for calls that must not reach the next allocator: those made before it is known, and those of libc on behalf
// of our own thread trampoline. Blocks are recognised by their address for ever after; none of them is recorded.
//
// Once a block exists, taf_off_<id> of every function that takes a block leads to its wrapper, which asks owns(): so a
// block survives switching recording off.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace traceaf::preload::bootstrap {

inline constexpr size_t kPoolBytes = size_t{64} << 10;
inline constexpr size_t kCellBytes = 256;
inline constexpr size_t kCells = 64;

struct Arena {
  alignas(4096) uint8_t pool[kPoolBytes];
  uint8_t cells[kCells][kCellBytes];
};
extern Arena g_arena;
extern std::atomic<bool> g_extended;  // blocks beyond the arena exist (set before the first is handed out)

bool owns_extended(const void* p);
inline bool owns(const void* p) {
  if (reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(&g_arena) < sizeof(Arena)) [[unlikely]]
    return true;
  return g_extended.load(std::memory_order_relaxed) && owns_extended(p);
}

// Bytes usable in a block of ours.
size_t size_of(const void* p);
// Takes a block back: a cell is used again, a block of the pool is not.
void give_back(void* p);
// Contents of the block `old` moved to `fresh` (null: nothing happens), then `old` given back. Returns `fresh`.
void* copy_out(void* fresh, void* old, size_t bytes);
// A block for libc while our trampoline runs, or nullptr when there is none (too large, or all in use).
void* cell(size_t bytes);
// Blocks of the pool handed out so far (counter bootstrap_blocks).
uint64_t served();

// The allocation family before start(). A block that is not ours can be neither freed nor moved yet: it stays.
void* malloc(size_t size);
void* calloc(size_t count, size_t size);
void* realloc(void* p, size_t size);
void* reallocarray(void* p, size_t count, size_t size);
void free(void* p);
int posix_memalign(void** out, size_t align, size_t size);
void* aligned_alloc(size_t align, size_t size);
void* memalign(size_t align, size_t size);
void* valloc(size_t size);
void* pvalloc(size_t size);
size_t malloc_usable_size(void* p);
void free_sized(void* p, size_t size);
void free_aligned_sized(void* p, size_t align, size_t size);

}  // namespace traceaf::preload::bootstrap
