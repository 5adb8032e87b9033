// Type ids of a generation (see types.h).
#include "emitter/types.h"

#include <cstring>

#include "emitter/context_tree.h"
#include "emitter/region.h"

namespace traceaf::emitter {

constinit TypeFront g_type_fronts[2];

namespace {

constinit InternMap<TypeEntry, 16, 13, 4096> g_types[2];

bool has_rows(const Section& section, uint32_t node) {
  const ContextNode* known = context_node(node);
  return known == nullptr ||
         known->row_gen.load(std::memory_order_relaxed) == static_cast<uint32_t>(section.generation());
}

}  // namespace

bool TypeFront::add_to(size_t group, uint64_t key, uint32_t id) {
  Place* places = places_.load(std::memory_order_acquire) + group * kPlaces;
  const size_t page = group * kPlaces * sizeof(Place) / kPage;
  const uint64_t bit = uint64_t{1} << page % 64;
  if ((touched_[page / 64].load(std::memory_order_relaxed) & bit) == 0)
    touched_[page / 64].fetch_or(bit, std::memory_order_relaxed);
  const unsigned first = first_of(key);
  for (unsigned i = 0; i < kPlaces; ++i) {
    Place& place = places[(first + i) % kPlaces];
    uint64_t seen = 0;
    if (!place.key.compare_exchange_strong(seen, key, std::memory_order_relaxed) && seen != key) continue;
    // Its Site row and node rows are in the trace already, and a generation's rows have no order among threads.
    place.id.store(id, std::memory_order_relaxed);
    return true;
  }
  return false;
}

void TypeFront::add(uint64_t key, uint32_t node, uint32_t id) {
  if (places_.load(std::memory_order_acquire) == nullptr) {
    auto* fresh = static_cast<Place*>(own_map(kBytes));
    if (fresh == nullptr) return;
    Place* expected = nullptr;
    if (!places_.compare_exchange_strong(expected, fresh, std::memory_order_acq_rel)) own_unmap(fresh, kBytes);
  }
  if (!add_to(group_of(node), key, id)) add_to(overflow_group_of(key), key, id);
}

void TypeFront::clear() {
  Place* places = places_.load(std::memory_order_relaxed);
  if (places == nullptr) return;
  // Zeroed here, on the flusher: pages given back would have to be faulted in by the program's threads.
  for (size_t page = 0; page < kBytes / kPage; ++page) {
    const uint64_t bit = uint64_t{1} << page % 64;
    if ((touched_[page / 64].load(std::memory_order_relaxed) & bit) != 0)
      memset(reinterpret_cast<char*>(places) + page * kPage, 0, kPage);
  }
  for (auto& word : touched_) word.store(0, std::memory_order_relaxed);
}

uint32_t type_of_new(Section& section, uint32_t node, wire::Entry entry, uint8_t align_log2, uint64_t size) {
  context_rows(section, node);
  const auto kind = static_cast<uint8_t>(entry);
  const uint32_t id = g_types[section.generation() & 1].find_or_add(
      mix(size, uint64_t{node} << 16 ^ uint64_t{align_log2} << 8 ^ kind),
      [&](const TypeEntry& t) {
        return t.node == node && t.size == size && t.entry == kind && t.align_log2 == align_log2;
      },
      [&](TypeEntry& t, uint32_t fresh) {
        t.size = size;
        t.node = node;
        t.entry = kind;
        t.align_log2 = align_log2;
        t.used = 1;
        RowBytes row;
        row.number(kind).number(align_log2).number(size);
        section.row_after(wire::Row::kSite, fresh, node, row);
      });
  const uint64_t key = TypeFront::key(node, entry, align_log2, size);
  // While a row is missing it is tried again with each event.
  if (id != 0 && key != TypeFront::kNoKey && has_rows(section, node))
    g_type_fronts[section.generation() & 1].add(key, node, id);
  return id;
}

void types_of_generation(uint64_t gen, void (*visit)(void*, uint32_t, const TypeEntry&), void* context) {
  auto& map = g_types[gen & 1];
  const uint32_t limit = map.limit();
  for (uint32_t id = 1; id < limit; ++id) {
    const TypeEntry* entry = map.at(id);
    if (entry != nullptr && entry->used != 0) visit(context, id, *entry);
  }
}

void types_prepare(uint64_t gen) {
  g_types[gen & 1].clear();
  g_type_fronts[gen & 1].clear();
}

}  // namespace traceaf::emitter
