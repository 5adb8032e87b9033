// An insert-only interning map after the idea of Go's tracer: lookups take no lock, an insert is one compare-exchange
// on a chain's head, ids are dense, memory comes in chunks that stay. (Go's is a trie; a table with chains needs one
// load where the trie needs one a level, and its 2^k heads are untouched zero pages until used.)
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emitter/region.h"

namespace traceaf::emitter {

// Entry must have `std::atomic<uint32_t> next` and be valid when all-zero. Index 0 is never used.
template <typename Entry, unsigned kHeadBits, unsigned kChunkBits, unsigned kMaxChunks>
class InternMap {
 public:
  static constexpr uint32_t kChunk = uint32_t{1} << kChunkBits;

  constexpr InternMap() = default;

  // The entry of an index that find_or_add has returned.
  [[nodiscard]] Entry& get(uint32_t index) const {
    return chunks_[index >> kChunkBits].load(std::memory_order_acquire)[index & (kChunk - 1)];
  }
  // nullptr for an index that was given out when there was no memory for its chunk.
  [[nodiscard]] Entry* at(uint32_t index) const {
    Entry* chunk = chunks_[index >> kChunkBits].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : chunk + (index & (kChunk - 1));
  }
  // One more than the highest index given out.
  [[nodiscard]] uint32_t limit() const { return next_index_.load(std::memory_order_acquire); }

  // Index of the entry for which equal(entry), else of a new one set up by fill(entry, index) before anyone can find
  // it; 0 when there is no memory. Two threads may fill for one key at once: one wins, the other's index stays unused.
  template <typename Equal, typename Fill>
  uint32_t find_or_add(uint64_t hash, Equal equal, Fill fill) {
    std::atomic<uint32_t>* heads = heads_.load(std::memory_order_acquire);
    if (heads == nullptr) {
      heads = make_heads();
      if (heads == nullptr) return 0;
    }
    std::atomic<uint32_t>& head = heads[hash >> (64 - kHeadBits)];
    uint32_t first = head.load(std::memory_order_acquire);  // pairs with the release below: the entry is complete
    uint32_t found = search(first, 0, equal);
    if (found != 0) return found;
    const uint32_t index = new_index();
    if (index == 0) return 0;
    Entry* entry = &get(index);
    fill(*entry, index);
    for (;;) {
      entry->next.store(first, std::memory_order_relaxed);
      const uint32_t seen = first;
      if (head.compare_exchange_weak(first, index, std::memory_order_acq_rel, std::memory_order_acquire)) return index;
      found = search(first, seen, equal);  // only what was added meanwhile
      if (found != 0) return found;
    }
  }

  // Empties the map; memory is kept for the next use. Nobody may use it meanwhile.
  void clear() {
    std::atomic<uint32_t>* heads = heads_.load(std::memory_order_relaxed);
    if (heads == nullptr) return;
    const uint32_t used = limit();
    zero(heads, kHeadBytes);
    for (uint32_t chunk = 0; chunk <= (used - 1) >> kChunkBits && chunk < kMaxChunks; ++chunk) {
      Entry* entries = chunks_[chunk].load(std::memory_order_relaxed);
      if (entries != nullptr)
        zero(entries,
             chunk == (used - 1) >> kChunkBits ? ((used - 1) % kChunk + 1) * sizeof(Entry) : kChunk * sizeof(Entry));
    }
    next_index_.store(1, std::memory_order_release);
  }

 private:
  // Small parts are zeroed by the caller, the flusher: pages given back have to be faulted in by the program's threads.
  static void zero(void* at, size_t bytes) {
    constexpr size_t kSmall = size_t{1} << 20;
    constexpr size_t kPage = 4096;
    if (bytes <= kSmall) {
      memset(at, 0, bytes);
    } else {
      sys::advise(at, (bytes + kPage - 1) & ~(kPage - 1), MADV_DONTNEED);
    }
  }
  static constexpr size_t kHeadBytes = sizeof(std::atomic<uint32_t>) << kHeadBits;

  template <typename Equal>
  uint32_t search(uint32_t from, uint32_t until, Equal equal) const {
    for (uint32_t i = from; i != until && i != 0;) {
      Entry* entry = &get(i);
      if (equal(*entry)) return i;
      i = entry->next.load(std::memory_order_relaxed);
    }
    return 0;
  }

  std::atomic<uint32_t>* make_heads() {
    auto* fresh = static_cast<std::atomic<uint32_t>*>(own_map(kHeadBytes));
    if (fresh == nullptr) return nullptr;
    std::atomic<uint32_t>* expected = nullptr;
    if (heads_.compare_exchange_strong(expected, fresh, std::memory_order_acq_rel)) return fresh;
    own_unmap(fresh, kHeadBytes);
    return expected;
  }

  uint32_t new_index() {
    const uint32_t index = next_index_.fetch_add(1, std::memory_order_acq_rel);
    const uint32_t chunk = index >> kChunkBits;
    if (chunk >= kMaxChunks) {
      next_index_.fetch_sub(1, std::memory_order_relaxed);
      return 0;
    }
    if (chunks_[chunk].load(std::memory_order_acquire) == nullptr) {
      auto* fresh = static_cast<Entry*>(own_map(kChunk * sizeof(Entry)));
      if (fresh == nullptr) return 0;
      Entry* expected = nullptr;
      if (!chunks_[chunk].compare_exchange_strong(expected, fresh, std::memory_order_acq_rel))
        own_unmap(fresh, kChunk * sizeof(Entry));
    }
    return index;
  }

  std::atomic<std::atomic<uint32_t>*> heads_{nullptr};
  std::atomic<uint32_t> next_index_{1};
  std::atomic<Entry*> chunks_[kMaxChunks] = {};
};

// Mixes a key into the high bits (multiplication by an odd constant with bits spread evenly, then folded).
inline uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t h = (a ^ (b << 32 | b >> 32)) * 0x9E3779B97F4A7C15u;
  h ^= h >> 29;
  return h * 0xBF58476D1CE4E5B9u;
}

// A hash for a table of 2^head_bits heads by which the members of one group (the children of a node, the sizes of a
// site) share a cache line of heads: they are looked up one after the other.
inline uint64_t clustered(uint64_t group_hash, uint64_t member_hash, unsigned head_bits) {
  constexpr unsigned kLineBits = 4;
  const unsigned rest = 64 - head_bits;
  const uint64_t within = ((group_hash << 20 ^ member_hash) >> (64 - kLineBits)) << rest;
  return (group_hash & ~(~uint64_t{0} >> (head_bits - kLineBits))) | within;
}

}  // namespace traceaf::emitter
