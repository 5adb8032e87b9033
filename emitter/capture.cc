// From a wrapper's frame to a node of the calling-context tree (see capture.h).
#include "emitter/capture.h"

#include "emitter/context_tree.h"
#include "emitter/counters.h"
#include "emitter/session.h"
#include "emitter/unwind/unwind.h"

namespace traceaf::emitter {

uint32_t capture_context(Section* section, ThreadRecord& record, Frame frame) {
  if (settings().stacks == Stacks::kNone) return static_cast<uint32_t>(wire::NodeRoot::kNone);
  // The stack from here to its top is readable when we are on the thread's own stack; on another one (signal stack,
  // coroutine) nothing is known and the walk probes.
  const auto here = reinterpret_cast<uintptr_t>(frame);
  unwind::Bounds bounds{0, 0};
  if (here >= record.stack_bounds.lo && here < record.stack_bounds.hi) bounds = {here, record.stack_bounds.hi};
  wire::NodeRoot root = wire::NodeRoot::kComplete;
  const uint32_t n = unwind::walk(unwind::start_of(frame), bounds, record.steps, settings().depth, &root);
  if (root != wire::NodeRoot::kComplete) count(wire::Counter::k_truncated_stacks);
  return context_of(section, record.steps, n, root);
}

}  // namespace traceaf::emitter
