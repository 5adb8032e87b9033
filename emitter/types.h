// Type ids: in each generation a dense number for every (call path, entry point, alignment, requested size). Two maps
// take turns, so a generation that is being closed keeps its own while the next one fills.
#pragma once

#include <atomic>
#include <cstdint>

#include "emitter/intern.h"
#include "emitter/packed_block.h"
#include "emitter/section.h"
#include "emitter/wire/entries.h"

namespace traceaf::emitter {

struct TypeEntry {
  uint64_t size;
  uint32_t node;
  uint8_t entry;
  uint8_t align_log2;
  uint8_t used;                // 0: the index was given out and not needed
  std::atomic<uint32_t> next;  // in the hash chain
};

// In front of a map: the ids of common keys, those of one node side by side, so that the sizes allocated at one place
// cost one or two cache lines. Filled once a generation and never changed in it; what does not fit is in the map alone.
class TypeFront {
 public:
  // What key() gives for a combination that it can't express.
  static constexpr uint64_t kNoKey = 0;
  static uint64_t key(uint32_t node, wire::Entry entry, uint8_t align_log2, uint64_t size) {
    static_assert(static_cast<unsigned>(wire::Entry::k_inherited) < 1u << PackedBlock::kEntryBits);
    static_assert(kNoKey == 0);
    return PackedBlock::pack(node, static_cast<uint8_t>(entry), align_log2, size);
  }
  // The id of `key`, 0 when it is not here.
  [[nodiscard]] uint32_t find(uint64_t key, uint32_t node) const {
    const Place* places = places_.load(std::memory_order_acquire);
    if (places == nullptr) return 0;
    const unsigned first = first_of(key);
    for (size_t group = group_of(node);; group = overflow_group_of(key)) {
      const Place* place = places + group * kPlaces;
      for (unsigned i = 0; i < kPlaces; ++i) {
        const Place& at = place[(first + i) % kPlaces];
        const uint64_t seen = at.key.load(std::memory_order_relaxed);
        if (seen == key) return at.id.load(std::memory_order_relaxed);
        if (seen == 0) return 0;
      }
      if (group == overflow_group_of(key)) return 0;
    }
  }
  void add(uint64_t key, uint32_t node, uint32_t id);
  // Nobody may use it meanwhile.
  void clear();

 private:
  static constexpr unsigned kGroupBits = 14;
  static constexpr unsigned kPlaces = 8;
  struct Place {
    std::atomic<uint64_t> key;
    std::atomic<uint32_t> id;  // 0 for a moment after the key was set
  };
  static constexpr size_t kBytes = sizeof(Place) * kPlaces << kGroupBits;
  static constexpr size_t kPage = 4096;

  // Sizes that are near each other, as those of one site often are, get places of their own.
  static unsigned first_of(uint64_t key) {
    const uint64_t size = key >> PackedBlock::kSizeAt;
    return static_cast<unsigned>(size >> 3 ^ size >> 6 ^ PackedBlock::node(key));
  }
  static size_t group_of(uint32_t node) { return node * uint32_t{0x9E3779B1} >> (32 - kGroupBits); }
  // For nodes that allocate many sizes.
  static size_t overflow_group_of(uint64_t key) { return key * 0x9E3779B97F4A7C15u >> (64 - kGroupBits); }
  bool add_to(size_t group, uint64_t key, uint32_t id);

  std::atomic<Place*> places_{nullptr};
  std::atomic<uint64_t> touched_[kBytes / kPage / 64] = {};  // a bit for each page that may be other than zero
};

extern TypeFront g_type_fronts[2];  // by parity of the generation

uint32_t type_of_new(Section& section, uint32_t node, wire::Entry entry, uint8_t align_log2, uint64_t size);
// The type id in the section's generation; its Site row, and the rows of its node, are written before the id can be
// seen by others. 0 when there is no memory: the event then has no type.
inline uint32_t type_of(Section& section, uint32_t node, wire::Entry entry, uint8_t align_log2, uint64_t size) {
  const uint64_t key = TypeFront::key(node, entry, align_log2, size);
  const uint32_t id = g_type_fronts[section.generation() & 1].find(key, node);
  if (id != 0 && key != TypeFront::kNoKey) [[likely]]
    return id;
  return type_of_new(section, node, entry, align_log2, size);
}

// Calls visit(context, id, entry) for every type of generation `gen`, which nobody writes to any more.
void types_of_generation(uint64_t gen, void (*visit)(void* context, uint32_t id, const TypeEntry& entry),
                         void* context);
// Makes the map of `gen` ready. Before gen becomes the current generation.
void types_prepare(uint64_t gen);

}  // namespace traceaf::emitter
