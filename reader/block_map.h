// Live blocks by address: open addressing with two entries a cache line, made for one lookup an event on a set much
// larger than the caches. prefetch() begins the memory access of a later lookup.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace traceaf::reader {

struct Block {
  uint64_t size = 0, birth_ns = 0;
  uint32_t site = 0, thread = 0;
};

class BlockMap {
 public:
  struct Entry {
    uint64_t address = 0;
    Block block;
  };

  BlockMap() { reset(kMinCapacity); }

  [[nodiscard]] size_t size() const { return size_; }
  void prefetch(uint64_t address) const { __builtin_prefetch(&entries_[home(address)], 1); }
  // nullptr when there is none. Valid until the next insert or erase.
  [[nodiscard]] Entry* find(uint64_t address) {
    for (size_t at = home(address);; at = (at + 1) & mask_) {
      Entry& entry = entries_[at];
      if (entry.block.site == kEmpty) return nullptr;
      if (entry.address == address) return &entry;
    }
  }
  // The entry of `address`, and whether it is new (then it holds `block`). block.site must be below 2^32 - 1.
  std::pair<Entry*, bool> insert(uint64_t address, const Block& block) {
    if (size_ >= limit_) [[unlikely]]
      grow();
    for (size_t at = home(address);; at = (at + 1) & mask_) {
      Entry& entry = entries_[at];
      if (entry.block.site == kEmpty) {
        entry = {address, block};
        ++size_;
        return {&entry, true};
      }
      if (entry.address == address) return {&entry, false};
    }
  }
  void erase(Entry* entry) {
    // Entries behind the hole move up when that brings them no further than their home.
    auto hole = static_cast<size_t>(entry - entries_.get());
    for (size_t at = (hole + 1) & mask_; entries_[at].block.site != kEmpty; at = (at + 1) & mask_) {
      const size_t wanted = home(entries_[at].address);
      if (((at - wanted) & mask_) >= ((at - hole) & mask_)) {
        entries_[hole] = entries_[at];
        hole = at;
      }
    }
    entries_[hole].block.site = kEmpty;
    --size_;
  }
  void clear() {
    size_ = 0;
    reset(kMinCapacity);
  }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (size_t i = 0; i <= mask_; ++i) {
      if (entries_[i].block.site != kEmpty) visit(entries_[i].address, entries_[i].block);
    }
  }

 private:
  static constexpr uint32_t kEmpty = ~uint32_t{0};
  static constexpr size_t kMinCapacity = 1024;

  [[nodiscard]] size_t home(uint64_t address) const {
    return static_cast<size_t>((address * 0x9e3779b97f4a7c15) >> shift_);
  }
  void reset(size_t capacity) {
    entries_ = std::make_unique_for_overwrite<Entry[]>(capacity);
    for (size_t i = 0; i < capacity; ++i) entries_[i].block.site = kEmpty;
    mask_ = capacity - 1;
    shift_ = 64 - static_cast<unsigned>(__builtin_ctzll(capacity));
    limit_ = capacity / 8 * 5;
  }
  void grow() {
    const size_t old_capacity = mask_ + 1;
    const std::unique_ptr<Entry[]> old = std::move(entries_);
    reset(2 * old_capacity);
    for (size_t i = 0; i < old_capacity; ++i) {
      if (old[i].block.site == kEmpty) continue;
      size_t at = home(old[i].address);
      while (entries_[at].block.site != kEmpty) at = (at + 1) & mask_;
      entries_[at] = old[i];
    }
  }

  std::unique_ptr<Entry[]> entries_;
  size_t mask_ = 0, size_ = 0, limit_ = 0;
  unsigned shift_ = 0;
};

}  // namespace traceaf::reader
