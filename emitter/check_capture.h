// For the tests, in libtraceaf-check-capture.so only: each capture is compared with a plain walk of the rules, and each
// N-th with libunwind (TRACEAF_CHECK_LIBUNWIND=N). When the process ends or becomes another, one line of totals is
// appended to the file TRACEAF_CHECK_OUT.
#pragma once

#include <cstdint>

#include "emitter/recorder.h"
#include "emitter/unwind/unwind.h"

namespace traceaf::emitter {

// `node`: what the capture from the wrapper `frame` with these bounds and this cap came to, `root` why it ended.
void check_capture(Frame frame, const unwind::Bounds& bounds, uint32_t cap, uint32_t node, wire::NodeRoot root);

// Writes the line, and counts from zero again.
void check_capture_report();

}  // namespace traceaf::emitter
