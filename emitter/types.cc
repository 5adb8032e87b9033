// Type ids of a generation (see types.h).
#include "emitter/types.h"

#include "emitter/intern.h"

namespace traceaf::emitter {
namespace {

constinit InternMap<TypeEntry, 16, 13, 4096> g_types[2];

}  // namespace

uint32_t type_of(Section& section, uint32_t node, wire::Entry entry, uint8_t align_log2, uint64_t size) {
  const auto kind = static_cast<uint8_t>(entry);
  return g_types[section.generation() & 1].find_or_add(
      mix(size, uint64_t{node} << 16 ^ uint64_t{align_log2} << 8 ^ kind),
      [&](const TypeEntry& t) {
        return t.node == node && t.size == size && t.entry == kind && t.align_log2 == align_log2;
      },
      [&](TypeEntry& t, uint32_t id) {
        t.size = size;
        t.node = node;
        t.entry = kind;
        t.align_log2 = align_log2;
        t.used = 1;
        RowBytes row;
        row.number(id).number(node).number(kind).number(align_log2).number(size);
        section.row(wire::Row::kSite, row);
      });
}

void types_of_generation(uint64_t gen, void (*visit)(void*, uint32_t, const TypeEntry&), void* context) {
  auto& map = g_types[gen & 1];
  const uint32_t limit = map.limit();
  for (uint32_t id = 1; id < limit; ++id) {
    const TypeEntry* entry = map.at(id);
    if (entry != nullptr && entry->used != 0) visit(context, id, *entry);
  }
}

void types_prepare(uint64_t gen) { g_types[gen & 1].clear(); }

}  // namespace traceaf::emitter
