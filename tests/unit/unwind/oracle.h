// The call stack as libunwind sees it, for comparison frame by frame with the walk of the recorder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "emitter/unwind/unwind.h"

namespace traceaf::test {

struct Stack {
  std::vector<emitter::unwind::Step> frames;
  wire::NodeRoot end = wire::NodeRoot::kNone;
};

// The rest of the calling thread's stack; {0, 0} while it runs elsewhere (signal stack, coroutine). Every thread calls
// it once before it is used in a signal handler.
emitter::unwind::Bounds stack_bounds();

// The walk from `start`.
Stack walk_from(const emitter::unwind::Start& start, const emitter::unwind::Bounds& bounds, uint32_t cap = 4096);

// Comparisons made by compare_here on all threads.
struct Tally {
  uint64_t compared = 0;     // captures
  uint64_t frames = 0;       // equal frames
  uint64_t interrupted = 0;  // captures that crossed a signal frame
  uint64_t no_cfi = 0;       // captures that ended at code without tables
  uint64_t other_stack = 0;  // captures away from the thread's own stack
  uint64_t different = 0;    // captures that differ from libunwind's
  std::string first_difference;
};
Tally take_tally();

// Walks from its caller with both and counts. C linkage: the subjects of the tests are built apart. Async-signal-safe.
extern "C" void compare_here();

}  // namespace traceaf::test
