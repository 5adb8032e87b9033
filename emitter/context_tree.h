// The calling-context tree: every distinct call path is one node, found or added by (parent, return address, module).
// Insert-only and lock-free; ids are dense from wire::kFirstNode and keep their meaning for the life of the process
// image.
#pragma once

#include <atomic>
#include <cstdint>

#include "emitter/section.h"
#include "emitter/unwind/unwind.h"
#include "emitter/wire/rows.h"

namespace traceaf::emitter {

struct ContextNode {
  uintptr_t ra;
  uint32_t parent;
  uint32_t module;
  std::atomic<uint32_t> next;        // in the hash chain
  std::atomic<uint32_t> last_child;  // child that was found last: most lookups end here
  std::atomic<uint32_t> row_gen;  // low half of the generation whose Node row exists; rows are written before it is set
};

// The node of the stack steps[0, n) (innermost first) under `root`. With a section, rows (Module, Node) that its
// generation lacks are written first. When there is no memory for nodes the stack is cut at its inner end.
uint32_t context_of(Section* section, const unwind::Step* steps, uint32_t n, wire::NodeRoot root);
// Writes the rows of `node` and its ancestors that the section's generation lacks.
void context_rows(Section& section, uint32_t node);
// Writes the Module rows of this generation again whose libraries were unloaded meanwhile, now with the flag.
void context_unloaded_rows(Section& section);
const ContextNode* context_node(uint32_t id);
uint32_t context_nodes();

}  // namespace traceaf::emitter
