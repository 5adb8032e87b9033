// The calling-context tree: every distinct call path is one node, found or added by (parent, return address, origin):
// the module, and whether the walk got there by a guess.
// Insert-only and lock-free; ids are dense from wire::kFirstNode and keep their meaning for the life of the process
// image.
#pragma once

#include <atomic>
#include <cstdint>

#include "emitter/intern.h"
#include "emitter/section.h"
#include "emitter/wire/rows.h"

namespace traceaf::emitter {

struct ContextNode {
  uintptr_t ra;
  uint32_t parent;
  uint32_t origin;                // see node_origin
  std::atomic<uint32_t> next;     // in the hash chain
  std::atomic<uint32_t> row_gen;  // low half of the generation whose Node row exists; rows are written before it is set
  std::atomic<uint32_t> linked;   // 1 once it can be found: what lies before is complete
};
static_assert(sizeof(ContextNode) == 32);

// Module id (see modules.h) and, apart from its bits, whether the frame was reached over code without unwind tables.
constexpr uint32_t kOriginGuessed = uint32_t{1} << 31;
constexpr uint32_t node_origin(uint32_t module, bool guessed) { return module | (guessed ? kOriginGuessed : 0); }
constexpr uint32_t module_of_origin(uint32_t origin) { return origin & ~kOriginGuessed; }

// 2^19 chain heads (2 MiB of address space, touched as used), chunks of 2^14 nodes, at most 2^26 nodes.
inline constexpr unsigned kContextHeadBits = 19;
using ContextNodes = InternMap<ContextNode, kContextHeadBits, 14, 4096>;
extern ContextNodes g_context_nodes;
// Map index i holds node id i + kContextNodeOffset, so that ids below kFirstNode stay free for the roots.
inline constexpr uint32_t kContextNodeOffset = wire::kFirstNode - 1;

// A thread's memory of the children that it met last, so that no thread writes where others read. All-zero at first.
struct ChildCache {
  static constexpr unsigned kBits = 13;
  uint32_t& place(uint32_t parent, uintptr_t ra) {
    return ids[(ra ^ uint64_t{parent} << 32 ^ parent) * 0x9E3779B97F4A7C15u >> (64 - kBits)];
  }
  uint32_t ids[1u << kBits];  // 0: empty
};

inline bool is_child(const ContextNode& node, uint32_t parent, uintptr_t ra, uint32_t origin) {
  return node.ra == ra && node.parent == parent && node.origin == origin;
}

uint32_t context_child_new(ChildCache& cache, uint32_t parent, uintptr_t ra, uint32_t origin);
// The node for `ra` of `origin` called from `parent` (a node or a root), added when it is new; 0 when there is no
// memory for nodes.
inline uint32_t context_child(ChildCache& cache, uint32_t parent, uintptr_t ra, uint32_t origin) {
  // The nodes of a path were made in one go, so most often the child is the next one; that guess waits for no load.
  const uint32_t guess = parent + 1;
  if (parent >= wire::kFirstNode && ((guess - kContextNodeOffset) & (ContextNodes::kChunk - 1)) != 0) {
    const ContextNode& node = g_context_nodes.get(guess - kContextNodeOffset);
    if (node.linked.load(std::memory_order_acquire) != 0 && is_child(node, parent, ra, origin)) return guess;
  }
  const uint32_t cached = cache.place(parent, ra);
  if (cached != 0 && is_child(g_context_nodes.get(cached - kContextNodeOffset), parent, ra, origin)) return cached;
  return context_child_new(cache, parent, ra, origin);
}

// nullptr for a root.
inline const ContextNode* context_node(uint32_t id) {
  return id < wire::kFirstNode ? nullptr : &g_context_nodes.get(id - kContextNodeOffset);
}
void context_missing_rows(Section& section, uint32_t node);
// Writes the rows (Module, Node) of `node` and its ancestors that the section's generation lacks. A node that has its
// row has ancestors with theirs.
inline void context_rows(Section& section, uint32_t node) {
  const ContextNode* known = context_node(node);
  if (known != nullptr && known->row_gen.load(std::memory_order_acquire) != static_cast<uint32_t>(section.generation()))
      [[unlikely]] {
    context_missing_rows(section, node);
  }
}
// Writes the Module rows of this generation again whose libraries were unloaded meanwhile, now with the flag.
void context_unloaded_rows(Section& section);
uint32_t context_nodes();

}  // namespace traceaf::emitter
