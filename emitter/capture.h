// From a wrapper's frame to a node of the calling-context tree.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emitter/context_tree.h"
#include "emitter/recorder.h"
#include "emitter/section.h"
#include "emitter/unwind/memo.h"

namespace traceaf::emitter {

// What a thread remembers from one capture to the next.
struct CaptureState {
  // Memo 0 is of the thread's own stack; the others serve signal stacks and coroutines in turn.
  static constexpr unsigned kMemos = 3;
  unwind::Memo memos[kMemos];
  unsigned turn;
  unwind::StackCache stacks;  // of the thread's own stack
  ChildCache children;
};

// Bytes of a CaptureState for stacks of up to `depth` frames with all that it points to.
size_t capture_state_bytes(uint32_t depth);
// Makes one in zeroed memory of that size.
CaptureState* capture_state_in(void* memory, uint32_t depth);

// Walks the stack of the current thread and interns it. Rows are left to the one who writes the node into the trace.
uint32_t capture_context(ThreadRecord& record, Frame frame);

}  // namespace traceaf::emitter
