// Bump allocation from mapped blocks (see region.h).
#include "emitter/region.h"

namespace traceaf::emitter {

std::atomic<uint64_t> g_own_bytes{0};

namespace {
constexpr size_t kPage = 4096;
constexpr size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }
}  // namespace

void* own_map(size_t bytes) {
  bytes = round_up(bytes, kPage);
  void* at = sys::map(bytes);
  if (at != nullptr) g_own_bytes.fetch_add(bytes, std::memory_order_relaxed);
  return at;
}

void own_unmap(void* at, size_t bytes) {
  bytes = round_up(bytes, kPage);
  sys::unmap(at, bytes);
  g_own_bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

void* Region::allocate(size_t bytes) {
  bytes = round_up(bytes, 16);
  for (;;) {
    Block* block = current_.load(std::memory_order_acquire);  // pairs with the release below: `used` is set
    if (block != nullptr) {
      const size_t at = block->used.fetch_add(bytes, std::memory_order_relaxed);
      if (at + bytes <= kBlock) return reinterpret_cast<char*>(block) + at;
    }
    const Locked lock(grow_);
    if (current_.load(std::memory_order_relaxed) != block) continue;
    auto* fresh = static_cast<Block*>(own_map(kBlock));
    if (fresh == nullptr) return nullptr;
    fresh->next = block;
    fresh->used.store(round_up(sizeof(Block), 16), std::memory_order_relaxed);
    current_.store(fresh, std::memory_order_release);
  }
}

void Region::reset() {
  Block* block = current_.exchange(nullptr, std::memory_order_acquire);
  while (block != nullptr) {
    Block* next = block->next;
    own_unmap(block, kBlock);
    block = next;
  }
}

}  // namespace traceaf::emitter
