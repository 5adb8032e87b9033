// The calling-context tree (see context_tree.h).
#include "emitter/context_tree.h"

#include "emitter/counters.h"
#include "emitter/intern.h"
#include "emitter/modules.h"

namespace traceaf::emitter {
namespace {

// 2^19 chain heads (2 MiB of address space, touched as used), chunks of 2^14 nodes, at most 2^26 nodes.
constinit InternMap<ContextNode, 19, 14, 4096> g_nodes;
// Map index i holds node id i + kOffset, so that ids below kFirstNode stay free for the roots.
constexpr uint32_t kOffset = wire::kFirstNode - 1;

// Children of the roots have no parent node to cache them.
constinit std::atomic<uint32_t> g_root_child[wire::kFirstNode] = {};

ContextNode* node_at(uint32_t id) { return &g_nodes.get(id - kOffset); }

std::atomic<uint32_t>& child_cache(uint32_t parent) {
  return parent < wire::kFirstNode ? g_root_child[parent] : node_at(parent)->last_child;
}

uint32_t child_of(uint32_t parent, const unwind::Step& step) {
  std::atomic<uint32_t>& cache = child_cache(parent);
  // Acquire pairs with the release below: the node behind the id is complete.
  const uint32_t cached = cache.load(std::memory_order_acquire);
  if (cached != 0) {
    const ContextNode* node = node_at(cached);
    if (node->ra == step.ra && node->module == step.module) return cached;
  }
  const uint64_t hash = mix(step.ra, (uint64_t{parent} << 16) ^ step.module);
  const uint32_t index = g_nodes.find_or_add(
      hash, [&](const ContextNode& n) { return n.ra == step.ra && n.parent == parent && n.module == step.module; },
      [&](ContextNode& n, uint32_t) {
        n.ra = step.ra;
        n.parent = parent;
        n.module = step.module;
      });
  if (index == 0) return 0;
  cache.store(index + kOffset, std::memory_order_release);
  return index + kOffset;
}

void write_module_row(Section& section, uint32_t id) {
  Module* module = module_by_id(id);
  if (module == nullptr || module->row_generation.load(std::memory_order_acquire) == section.generation()) return;
  RowBytes row;
  row.number(id).number(module->flags).number(module->start).number(module->end).number(module->bias);
  row.text(reinterpret_cast<const char*>(module->build_id), module->build_id_bytes);
  // Two threads may both write it: the rows are equal. Marked after the row is there, so nobody relies on a missing
  // one.
  if (section.row(wire::Row::kModule, row, module->path, module->path_bytes))
    module->row_generation.store(section.generation(), std::memory_order_release);
}

bool has_row(const Section& section, const ContextNode& node) {
  return node.row_gen.load(std::memory_order_acquire) == static_cast<uint32_t>(section.generation());
}

// A library that went away is said so in the generation that has its row.
}  // namespace

void context_unloaded_rows(Section& section) {
  for (uint32_t id = 1; id <= module_count(); ++id) {
    Module* module = module_by_id(id);
    if (module == nullptr || (module->flags & wire::kModuleUnloaded) == 0) continue;
    if (module->row_generation.load(std::memory_order_relaxed) != section.generation()) continue;
    module->row_generation.store(0, std::memory_order_relaxed);
    write_module_row(section, id);
  }
}

namespace {

void write_node_row(Section& section, uint32_t id, ContextNode* node) {
  write_module_row(section, node->module);
  const Module* module = module_by_id(node->module);
  RowBytes row;
  row.number(id).number(node->parent).number(node->module).number(node->ra - (module != nullptr ? module->start : 0));
  if (section.row(wire::Row::kNode, row))
    node->row_gen.store(static_cast<uint32_t>(section.generation()), std::memory_order_release);
}

}  // namespace

uint32_t context_of(Section* section, const unwind::Step* steps, uint32_t n, wire::NodeRoot root) {
  auto parent = static_cast<uint32_t>(root);
  for (uint32_t i = n; i-- > 0;) {
    const uint32_t id = child_of(parent, steps[i]);
    if (id == 0) {
      count(wire::Counter::k_lost_rows);  // the site is shown at the outer frame that is known
      return parent;
    }
    ContextNode* node = node_at(id);
    if (section != nullptr && !has_row(*section, *node)) write_node_row(*section, id, node);
    parent = id;
  }
  return parent;
}

void context_rows(Section& section, uint32_t node) {
  // Ancestors first. A node with a row has ancestors with rows, so the missing ones are the inner end of the path; the
  // outermost kAtOnce of them are written in each round.
  constexpr uint32_t kAtOnce = 32;
  uint32_t missing[kAtOnce];
  for (;;) {
    uint32_t n = 0;
    for (uint32_t id = node; id >= wire::kFirstNode && !has_row(section, *node_at(id)); id = node_at(id)->parent)
      missing[n++ % kAtOnce] = id;
    if (n == 0) return;
    const uint32_t round = n < kAtOnce ? n : kAtOnce;
    for (uint32_t i = 0; i < round; ++i) {
      const uint32_t id = missing[(n - 1 - i) % kAtOnce];
      write_node_row(section, id, node_at(id));
      if (!has_row(section, *node_at(id))) return;  // lost, and counted there
    }
  }
}

const ContextNode* context_node(uint32_t id) { return id < wire::kFirstNode ? nullptr : node_at(id); }
uint32_t context_nodes() { return g_nodes.limit() - 1; }

}  // namespace traceaf::emitter
