// From a wrapper's frame to a node of the calling-context tree (see capture.h).
#include "emitter/capture.h"

#include "emitter/counters.h"
#include "emitter/session.h"
#ifdef TRACEAF_CHECK_CAPTURE
#include "emitter/check_capture.h"
#endif

namespace traceaf::emitter {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t aligned(size_t n) { return (n + kAlign - 1) & ~(kAlign - 1); }

// For a stack that is not the thread's own: a memo that was there, or the next in turn.
unwind::Memo& memo_near(CaptureState& state, uintptr_t at) {
  for (unsigned i = 1; i < CaptureState::kMemos; ++i)
    if (state.memos[i].near(at)) return state.memos[i];
  state.turn = state.turn % (CaptureState::kMemos - 1) + 1;
  return state.memos[state.turn];
}

}  // namespace

size_t capture_state_bytes(uint32_t depth) {
  return aligned(sizeof(CaptureState)) + CaptureState::kMemos * aligned(unwind::Memo::frames_bytes(depth)) +
         unwind::Memo::scratch_bytes(depth);
}

CaptureState* capture_state_in(void* memory, uint32_t depth) {
  auto* at = static_cast<char*>(memory);
  auto* state = static_cast<CaptureState*>(memory);
  at += aligned(sizeof(CaptureState));
  char* scratch = at + CaptureState::kMemos * aligned(unwind::Memo::frames_bytes(depth));
  for (unwind::Memo& memo : state->memos) {
    memo.use(at, scratch, depth);
    at += aligned(unwind::Memo::frames_bytes(depth));
  }
  return state;
}

uint32_t capture_context(ThreadRecord& record, Frame frame) {
  if (settings().stacks == Stacks::kNone) return static_cast<uint32_t>(wire::NodeRoot::kNone);
  CaptureState& state = *record.capture;
  // The stack from here to its top is readable when we are on the thread's own stack; on another one (signal stack,
  // coroutine) nothing is known and the walk probes.
  const auto here = reinterpret_cast<uintptr_t>(frame);
  unwind::Bounds bounds{0, 0};
  const bool own = here >= record.stack_bounds.lo && here < record.stack_bounds.hi;
  if (own) bounds = {here, record.stack_bounds.hi};
  unwind::Memo& memo = own ? state.memos[0] : memo_near(state, here);
  const unwind::Start start = unwind::start_of(frame);
  if (const uint32_t known = own ? state.stacks.find(start) : 0; known != 0) {
#ifdef TRACEAF_CHECK_CAPTURE
    check_capture(frame, bounds, settings().depth, known, wire::NodeRoot::kComplete);
#endif
    return known;
  }
  const unwind::Memo::Found stack = memo.find(start, bounds);
  if (stack.root != wire::NodeRoot::kComplete) [[unlikely]]
    count(wire::Counter::k_truncated_stacks);
  const uint32_t node = memo.commit(stack, [&state](uint32_t parent, uintptr_t ra, uint32_t module, bool guessed) {
    const uint32_t child = context_child(state.children, parent, ra, node_origin(module, guessed));
    if (child == 0) [[unlikely]]
      count(wire::Counter::k_lost_rows);  // the site is shown at the outer frame that is known
    return child;
  });
  if (own) memo.keep(state.stacks, start, node);
#ifdef TRACEAF_CHECK_CAPTURE
  check_capture(frame, bounds, settings().depth, node, stack.root);
#endif
  return node;
}

}  // namespace traceaf::emitter
