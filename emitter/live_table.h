// Live blocks by address, laid out as the heap is: neighbours in the heap are neighbours here, so an allocator that
// reuses warm memory finds warm entries. Every 32 KiB of addresses that hold blocks have a leaf, found by hashing. A
// leaf with many blocks is dense: 8 bytes for each granule of 16 bytes, in a row. One with few is a list of those there
// are, in one of some sizes. Nothing but the small directory of leaves is rehashed, and what became empty is used again
// elsewhere, so memory follows the most blocks there were at once, not the addresses that were ever used. Not
// thread-safe.
#pragma once

#include <emmintrin.h>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "emitter/intern.h"
#include "emitter/live_pool.h"
#include "emitter/packed_block.h"
#include "emitter/probe_table.h"

namespace traceaf::emitter {

struct LiveBlock {
  uintptr_t address;  // not 0
  uint64_t size;
  uint32_t node;
  uint8_t entry;
  uint8_t align_log2;

  [[nodiscard]] uintptr_t key() const { return address; }
  void clear() { address = 0; }
  static uint64_t hash(uintptr_t key) { return mix(key, 0x51ed270b); }
};

class LiveTable {
 public:
  constexpr LiveTable() = default;

  // The same for all addresses of a leaf. The table uses the bits below the highest `kShardBits`.
  static constexpr unsigned kShardBits = 6;
  static uint64_t hash_of(uintptr_t address) { return hash_of_number(address >> kLeafBits); }

  // Adds a block, or replaces that of the same address. False: no memory; no block of that address is known then.
  bool add(LivePool& pool, const LiveBlock& block) {
    const uint64_t word = pack(block);
    if (word == kElsewhere || block.address % kGranule != 0) [[unlikely]]
      return add_odd(pool, block);
    return set(pool, block.address, word);
  }

  void remove(uintptr_t address) {
    if (address % kGranule != 0) [[unlikely]]
      return odd_.erase(address);
    const LeafName* name = leaves_.find(key_of(address));
    if (name == nullptr) return;
    Leaf& leaf = name->leaf();
    if (name->is_dense()) {
      uint64_t& word = leaf.words(kDense)[granule_of(address)];
      if (word == 0) return;
      if (word == kElsewhere) [[unlikely]]
        odd_.erase(address);
      word = 0;
      --leaf.used;
    } else {
      const uint32_t at = leaf.index_of(granule_of(address));
      if (at == leaf.used) return;
      uint64_t* words = leaf.words(name->kind());
      if (words[at] == kElsewhere) [[unlikely]]
        odd_.erase(address);
      // A fork may cut this anywhere (mend): no other block is missing then.
      const uint32_t last = leaf.used - 1;
      words[at] = words[last];
      in_this_order();
      leaf.granules()[at] = leaf.granules()[last];
      in_this_order();
      leaf.used = last;
    }
    if (leaf.used == 0) drop_leaf(*name);
  }

  template <typename Visit>
  void visit(Visit visit) const {
    leaves_.visit([&](const LeafName& name) {
      Leaf& leaf = name.leaf();
      const uint64_t* words = leaf.words(name.kind());
      const size_t count = name.is_dense() ? kGranules : leaf.used;
      for (size_t i = 0; i < count; ++i) {
        const size_t granule = name.is_dense() ? i : leaf.granules()[i];
        if (words[i] != 0 && words[i] != kElsewhere)
          visit(unpack(words[i], leaf.number << kLeafBits | granule * kGranule));
      }
    });
    odd_.visit(visit);
  }

  // Drops everything; what came from the pool goes with the pool.
  void forget();
  // In a forked child, when the table's owner vanished in the middle of a change: every block that was not being
  // changed is there. False: no memory, and the table is empty.
  bool mend(LivePool& pool);

 private:
  static constexpr unsigned kLeafBits = 15;
  static constexpr size_t kGranule = 16;
  static constexpr size_t kGranules = (size_t{1} << kLeafBits) / kGranule;

  // A block as one word, 0: none. What does not fit is in odd_, and kElsewhere is in its place.
  static constexpr uint64_t kElsewhere = 1;  // has no entry point, so it is no packed block
  static uint64_t pack(const LiveBlock& block) {
    const uint64_t word = PackedBlock::pack(block.node, block.entry, block.align_log2, block.size);
    return word != 0 ? word : kElsewhere;
  }
  static LiveBlock unpack(uint64_t word, uintptr_t address) {
    return {address, PackedBlock::size(word), PackedBlock::node(word), PackedBlock::entry(word),
            PackedBlock::align_log2(word)};
  }

  static uint64_t hash_of_number(uintptr_t number) { return number * 0x9E3779B97F4A7C15u; }
  static uintptr_t key_of(uintptr_t address) { return (address >> kLeafBits) + 1; }
  static size_t granule_of(uintptr_t address) { return address / kGranule & (kGranules - 1); }
  // Keeps the compiler from moving stores across: a forked child may find the table as it is here (mend).
  static void in_this_order() { std::atomic_signal_fence(std::memory_order_seq_cst); }

  // Kinds of leaves: lists of up to 8, 16, ... 128 blocks, then dense.
  static constexpr unsigned kDense = 5;
  static constexpr size_t capacity(unsigned kind) { return size_t{8} << kind; }
  struct alignas(LivePool::kLine) Leaf {
    uintptr_t number;  // of its addresses, the bits above kLeafBits
    Leaf* next_free;
    uint32_t used;

    // Behind this: the granules of a list, in the order of its words. Dense: all words; those without a block are 0,
    // also while the leaf is free.
    static constexpr size_t kGranulesAt = 32;
    static constexpr size_t words_at(unsigned kind) {
      const size_t end = kind == kDense ? kGranulesAt : kGranulesAt + capacity(kind) * sizeof(uint16_t);
      return (end + LivePool::kLine - 1) & ~(LivePool::kLine - 1);
    }
    static constexpr size_t bytes(unsigned kind) {
      return words_at(kind) + (kind == kDense ? kGranules : capacity(kind)) * sizeof(uint64_t);
    }
    uint64_t* words(unsigned kind) {
      return reinterpret_cast<uint64_t*>(reinterpret_cast<char*>(this) + words_at(kind));
    }
    uint16_t* granules() { return reinterpret_cast<uint16_t*>(reinterpret_cast<char*>(this) + kGranulesAt); }
    // In a list; `used` when it is not there. Beyond the used ones there may be anything.
    uint32_t index_of(size_t granule) {
      const __m128i wanted = _mm_set1_epi16(static_cast<int16_t>(granule));
      for (uint32_t i = 0; i < used; i += 8) {
        const __m128i eight = _mm_load_si128(reinterpret_cast<const __m128i*>(granules() + i));
        const int equal = _mm_movemask_epi8(_mm_cmpeq_epi16(eight, wanted));
        if (equal == 0) continue;
        const uint32_t at = i + static_cast<uint32_t>(__builtin_ctz(static_cast<unsigned>(equal))) / 2;
        return at < used ? at : used;
      }
      return used;
    }
  };

  struct LeafName {
    uintptr_t name;    // key_of its addresses
    uintptr_t tagged;  // the leaf, and its kind in the low bits
    [[nodiscard]] uintptr_t key() const { return name; }
    void clear() { name = 0; }
    static uint64_t hash(uintptr_t key) { return hash_of_number(key - 1) << kShardBits; }
    [[nodiscard]] unsigned kind() const { return tagged & (LivePool::kLine - 1); }
    [[nodiscard]] bool is_dense() const { return kind() == kDense; }
    [[nodiscard]] Leaf& leaf() const { return *reinterpret_cast<Leaf*>(tagged & ~(LivePool::kLine - 1)); }
  };

  bool set(LivePool& pool, uintptr_t address, uint64_t word) {
    const LeafName* name = leaves_.find(key_of(address));
    if (name == nullptr || !name->is_dense()) return set_in_list(pool, name, address, word);
    Leaf& leaf = name->leaf();
    uint64_t& at = leaf.words(kDense)[granule_of(address)];
    if (at == 0) ++leaf.used;
    replace(at, word, address);
    return true;
  }
  void replace(uint64_t& at, uint64_t word, uintptr_t address) {
    if (at == kElsewhere && word != kElsewhere) [[unlikely]]
      odd_.erase(address);
    at = word;
  }
  bool set_in_list(LivePool& pool, const LeafName* name, uintptr_t address, uint64_t word);
  bool add_odd(LivePool& pool, const LiveBlock& block);
  [[nodiscard]] bool is_elsewhere(uintptr_t address) const;
  Leaf* take_leaf(LivePool& pool, unsigned kind, uintptr_t number);
  void free_leaf(Leaf& leaf, unsigned kind);
  void drop_leaf(const LeafName& name);
  bool make_leaf(LivePool& pool, uintptr_t address);
  bool enlarge(LivePool& pool, const LeafName& name);
  static void recount(LeafName& name);

  ProbeTable<LeafName> leaves_;
  Leaf* free_[kDense + 1] = {};
  ProbeTable<LiveBlock> odd_;
};

}  // namespace traceaf::emitter
