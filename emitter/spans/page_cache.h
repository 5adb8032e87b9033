// Page -> small tag, lossy and lock-free to read: answers in a few ns whether a page is already known to belong to a
// slab of one size class. Always agrees with the set, which drops a page before its slab ends; may forget at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "emitter/region.h"
#include "emitter/sys.h"

namespace traceaf::emitter::spans {

inline constexpr unsigned kPageBits = 12;
inline constexpr uintptr_t kPageSize = uintptr_t{1} << kPageBits;

class PageCache {
 public:
  // tag 0: nothing is known. index: how many pages of the slab come before the page.
  struct Fact {
    unsigned tag, index;
  };
  constexpr PageCache() = default;

  // Maps the table on first use; without memory get() knows nothing, which only costs time.
  void prepare() {
    if (table_.load(std::memory_order_relaxed) != nullptr) return;
    // Pairs with the acquire in get() and set(): the zeroed table is seen before its address.
    table_.store(static_cast<Entry*>(own_map(kBytes)), std::memory_order_release);
  }
  // For the page of `at`. An entry is one word that names its page, so relaxed is enough; the reader holds a live
  // object in the page, so the page cannot change hands meanwhile.
  Fact get(uintptr_t at) const {
    const Entry* table = table_.load(std::memory_order_acquire);
    if (table == nullptr) return {0, 0};
    const uintptr_t page = at >> kPageBits;
    const uint64_t entry = table[page & kMask].load(std::memory_order_relaxed);
    if (entry >> kFactBits != page) return {0, 0};
    return {static_cast<unsigned>(entry >> 8 & 0xff), static_cast<unsigned>(entry & 0xff)};
  }
  // The rest is called under the lock of the set.
  // [lo, hi) is a slab of at most 256 pages, 1 <= tag <= 255.
  void set(uintptr_t lo, uintptr_t hi, unsigned tag) {
    Entry* table = table_.load(std::memory_order_acquire);
    if (table == nullptr) return;
    const uintptr_t first = lo >> kPageBits;
    for (uintptr_t page = first; page < hi >> kPageBits; ++page) {
      table[page & kMask].store(page << kFactBits | tag << 8 | (page - first), std::memory_order_relaxed);
    }
  }
  void drop(uintptr_t lo, uintptr_t hi) {
    Entry* table = table_.load(std::memory_order_acquire);
    if (table == nullptr) return;
    uintptr_t page = lo >> kPageBits;
    const uintptr_t end = hi >> kPageBits;
    for (size_t left = kEntries; page < end && left > 0; ++page, --left) {
      Entry& entry = table[page & kMask];
      const uintptr_t held = entry.load(std::memory_order_relaxed) >> kFactBits;
      if (held >= page && held < end) entry.store(0, std::memory_order_relaxed);
    }
  }
  void clear() {
    Entry* table = table_.load(std::memory_order_acquire);
    if (table != nullptr) sys::advise(table, kBytes, MADV_DONTNEED);  // anonymous private memory: reads as zero again
  }

 private:
  using Entry = std::atomic<uint64_t>;
  static constexpr size_t kEntries = size_t{1} << 16;  // 256 MiB of slabs without a conflict; pages touched on demand
  static constexpr size_t kMask = kEntries - 1;
  static constexpr size_t kBytes = kEntries * sizeof(Entry);
  static constexpr unsigned kFactBits = 16;
  std::atomic<Entry*> table_{nullptr};
};

}  // namespace traceaf::emitter::spans
