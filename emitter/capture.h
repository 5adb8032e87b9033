// From a wrapper's frame to a node of the calling-context tree.
#pragma once

#include <cstdint>

#include "emitter/recorder.h"
#include "emitter/section.h"

namespace traceaf::emitter {

// Walks the stack of the current thread and interns it; rows go to `section` unless it is null (standby).
uint32_t capture_context(Section* section, ThreadRecord& record, Frame frame);

}  // namespace traceaf::emitter
