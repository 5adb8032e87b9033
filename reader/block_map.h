// Live blocks by address: open addressing with two entries a cache line, made for one lookup an event on a set much
// larger than the caches. prefetch() begins the memory access of a later lookup.
//
// An erased entry keeps its address, for allocators hand out the same addresses again and again: the next block there
// finds its place at once. Entries erased for good are swept out when the table is full.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace traceaf::reader {

struct Block {
  uint64_t size = 0, birth_ns = 0;
  uint32_t site = 0, thread = 0;
};

class BlockMap {
 public:
  struct alignas(32) Entry {
    uint64_t address = 0;
    Block block;
  };

  BlockMap() { reset(kMinCapacity); }

  [[nodiscard]] size_t size() const { return size_; }
  void prefetch(uint64_t address) const {
    __builtin_prefetch(&entries_[home(address)], 1);
    asm volatile("");  // gcc removes calls of a function that does nothing but prefetch
  }
  // nullptr when there is none. Valid until the next insert.
  [[nodiscard]] Entry* find(uint64_t address) {
    for (size_t at = home(address);; at = (at + 1) & mask_) {
      Entry& entry = entries_[at];
      if (entry.address == address) return entry.block.site < kErased ? &entry : nullptr;
      if (entry.block.site == kEmpty) return nullptr;
    }
  }
  // The entry of `address`, and whether it is new: then its block must be set at once. block.site must be below
  // 2^32 - 2.
  std::pair<Entry*, bool> insert(uint64_t address) {
    if (used_ >= limit_) [[unlikely]]
      sweep();
    for (size_t at = home(address);; at = (at + 1) & mask_) {
      Entry& entry = entries_[at];
      if (entry.address != address && entry.block.site != kEmpty) continue;
      if (entry.block.site < kErased) return {&entry, false};
      used_ += entry.block.site == kEmpty ? 1 : 0;
      entry.address = address;
      ++size_;
      return {&entry, true};
    }
  }
  void erase(Entry* entry) {
    entry->block.site = kErased;
    --size_;
  }
  void clear() {
    size_ = 0;
    reset(kMinCapacity);
  }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (size_t i = 0; i <= mask_; ++i) {
      if (entries_[i].block.site < kErased) visit(entries_[i].address, entries_[i].block);
    }
  }

 private:
  static constexpr uint32_t kEmpty = ~uint32_t{0};
  static constexpr uint32_t kErased = kEmpty - 1;
  static constexpr size_t kMinCapacity = 1024;
  static constexpr size_t kLarge = size_t{1} << 20;  // entries
  static constexpr size_t kHugePage = size_t{2} << 20;

  struct Free {
    void operator()(Entry* entries) const { free(entries); }
  };

  [[nodiscard]] size_t home(uint64_t address) const {
    return static_cast<size_t>((address * 0x9e3779b97f4a7c15) >> shift_);
  }
  void reset(size_t capacity) {
    const size_t bytes = capacity * sizeof(Entry);
    entries_.reset();
    entries_.reset(static_cast<Entry*>(aligned_alloc(bytes >= kHugePage ? kHugePage : 64, bytes)));
    if (entries_ == nullptr) throw std::bad_alloc();
    if (bytes >= kHugePage) madvise(entries_.get(), bytes, MADV_HUGEPAGE);  // it is only faster
    std::uninitialized_fill_n(entries_.get(), capacity, Entry{0, {0, 0, kEmpty, 0}});
    mask_ = capacity - 1;
    shift_ = 64 - static_cast<unsigned>(__builtin_ctzll(capacity));
    limit_ = capacity / 8 * 5;
    used_ = 0;
  }
  // Throws the erased entries out, and doubles the table when they are too few for that to last.
  void sweep() {
    const size_t old_capacity = mask_ + 1;
    const std::unique_ptr<Entry[], Free> old = std::move(entries_);
    // A large table rather sweeps more often than that it takes more memory.
    const size_t most = old_capacity < kLarge ? limit_ / 2 : limit_ / 4 * 3;
    reset(size_ > most ? 2 * old_capacity : old_capacity);
    for (size_t i = 0; i < old_capacity; ++i) {
      if (old[i].block.site >= kErased) continue;
      size_t at = home(old[i].address);
      while (entries_[at].block.site != kEmpty) at = (at + 1) & mask_;
      entries_[at] = old[i];
    }
    used_ = size_;
  }

  std::unique_ptr<Entry[], Free> entries_;
  size_t mask_ = 0, size_ = 0, limit_ = 0;
  size_t used_ = 0;  // entries that are not empty
  unsigned shift_ = 0;
};

}  // namespace traceaf::reader
