// Bump allocation from mapped blocks (see region.h).
#include "emitter/region.h"

namespace traceaf::emitter {

std::atomic<uint64_t> g_own_bytes{0};

namespace sys {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TRACEAF_OWN_PLACE 0  // their shadows lie there
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRACEAF_OWN_PLACE 0
#endif
#ifndef TRACEAF_OWN_PLACE
#define TRACEAF_OWN_PLACE 1
#endif

void* next_place(size_t bytes) {
#if TRACEAF_OWN_PLACE
  constexpr uintptr_t kFirst = uintptr_t{0x2000} << 32;
  // Moved by some bits of where the loader put us, so that our tables do not lie at the same address in every run.
  static constinit std::atomic<uintptr_t> next{0};
  const uintptr_t from = kFirst + ((reinterpret_cast<uintptr_t>(&next) >> 12 & 0xffffff) << 14);
  const uintptr_t step = (bytes + 0xffff) & ~uintptr_t{0xffff};
  return reinterpret_cast<void*>(from + next.fetch_add(step, std::memory_order_relaxed));
#else
  (void)bytes;
  return nullptr;
#endif
}

}  // namespace sys

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
