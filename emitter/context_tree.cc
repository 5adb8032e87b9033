// The calling-context tree (see context_tree.h).
#include "emitter/context_tree.h"

#include "emitter/counters.h"
#include "emitter/intern.h"
#include "emitter/modules.h"

namespace traceaf::emitter {
constinit ContextNodes g_context_nodes;

namespace {

constexpr uint32_t kOffset = kContextNodeOffset;

ContextNode* node_at(uint32_t id) { return &g_context_nodes.get(id - kOffset); }

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
  const uint32_t id_of_module = module_of_origin(node->origin);
  write_module_row(section, id_of_module);
  const Module* module = module_by_id(id_of_module);
  RowBytes row;
  row.number(id_of_module).number(node->ra - (module != nullptr ? module->start : 0));
  if ((node->origin & kOriginGuessed) != 0) row.number(wire::kNodeGuessed);
  if (section.row_after(wire::Row::kNode, id, node->parent, row))
    node->row_gen.store(static_cast<uint32_t>(section.generation()), std::memory_order_release);
}

}  // namespace

uint32_t context_child_new(ChildCache& cache, uint32_t parent, uintptr_t ra, uint32_t origin) {
  const uint32_t index = g_context_nodes.find_or_add(
      clustered(mix(parent, 0), mix(ra, parent), kContextHeadBits),
      [&](const ContextNode& n) { return is_child(n, parent, ra, origin); },
      [&](ContextNode& n, uint32_t) {
        n.ra = ra;
        n.parent = parent;
        n.origin = origin;
      });
  if (index == 0) return 0;
  ContextNode& node = g_context_nodes.get(index);
  if (node.linked.load(std::memory_order_relaxed) == 0) node.linked.store(1, std::memory_order_release);
  cache.place(parent, ra) = index + kOffset;
  return index + kOffset;
}

void context_missing_rows(Section& section, uint32_t node) {
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

uint32_t context_nodes() { return g_context_nodes.limit() - 1; }

}  // namespace traceaf::emitter
