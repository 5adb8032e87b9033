// Type ids: in each generation a dense number for every (call path, entry point, alignment, requested size). Two maps
// take turns, so a generation that is being closed keeps its own while the next one fills.
#pragma once

#include <atomic>
#include <cstdint>

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

// The type id in the section's generation; its Site row is written before the id can be seen by others. 0 when there is
// no memory: the event then has no type.
uint32_t type_of(Section& section, uint32_t node, wire::Entry entry, uint8_t align_log2, uint64_t size);
// Calls visit(context, id, entry) for every type of generation `gen`, which nobody writes to any more.
void types_of_generation(uint64_t gen, void (*visit)(void* context, uint32_t id, const TypeEntry& entry),
                         void* context);
// Makes the map of `gen` ready. Before gen becomes the current generation.
void types_prepare(uint64_t gen);

}  // namespace traceaf::emitter
