// Bump allocation from mapped blocks, freed all at once: the recorder's only memory besides its slots.
// Thread-safe and lock-free except for a new block. Memory is zeroed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "emitter/lock.h"

namespace traceaf::emitter {

// Bytes mapped by the recorder in this process (counter own_bytes).
extern std::atomic<uint64_t> g_own_bytes;

// Zeroed anonymous memory rounded up to pages, or nullptr; counted in g_own_bytes.
void* own_map(size_t bytes);
void own_unmap(void* at, size_t bytes);

class Region {
 public:
  constexpr Region() = default;
  // `bytes` of zeroed memory aligned to 16, or nullptr when the kernel gives none. bytes <= kBlock / 2.
  void* allocate(size_t bytes);
  // Gives everything back. No one may use the region meanwhile.
  void reset();

  static constexpr size_t kBlock = size_t{256} << 10;

 private:
  struct Block {
    Block* next;
    std::atomic<size_t> used;
  };
  std::atomic<Block*> current_{nullptr};
  Mutex grow_;
};

}  // namespace traceaf::emitter
