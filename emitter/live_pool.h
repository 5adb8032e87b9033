// The memory of the live set: bump allocation from mapped blocks that are given back all at once. (Not a Region: its
// lock could be held at fork.) Zeroed, aligned to a cache line.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emitter/brief_lock.h"
#include "emitter/region.h"

namespace traceaf::emitter {

class LivePool {
 public:
  static constexpr size_t kLine = 64;
  static constexpr size_t kBlock = size_t{256} << 10;
  static constexpr size_t kLargest = kBlock / 4;
  struct alignas(kLine) Block {
    Block* next;
    size_t used;
  };

  constexpr LivePool() = default;
  // Up to kLargest bytes, or nullptr when the kernel gives none. Thread-safe.
  void* take(size_t bytes) {
    bytes = (bytes + kLine - 1) & ~(kLine - 1);
    const Locked lock(lock_);
    if (first_ == nullptr || first_->used + bytes > kBlock) {
      auto* fresh = static_cast<Block*>(own_map(kBlock));
      if (fresh == nullptr) return nullptr;
      fresh->next = first_;
      fresh->used = sizeof(Block);
      first_ = fresh;
    }
    void* at = reinterpret_cast<char*>(first_) + first_->used;
    first_->used += bytes;
    return at;
  }
  // All blocks, for release(); the pool is empty then. Nobody may use what was taken.
  Block* detach() {
    const Locked lock(lock_);
    Block* all = first_;
    first_ = nullptr;
    return all;
  }
  static void release(Block* blocks) {
    while (blocks != nullptr) {
      Block* next = blocks->next;
      own_unmap(blocks, kBlock);
      blocks = next;
    }
  }
  // In a forked child. A vanished owner's change may be half done: the rest of its block is not used then.
  void after_fork() {
    if (lock_.reset() && first_ != nullptr) first_->used = kBlock;
  }

 private:
  BriefLock lock_;
  Block* first_ = nullptr;
};

}  // namespace traceaf::emitter
