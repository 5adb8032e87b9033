// The ends of the process image that are not a call of a hooked function.
#pragma once

namespace traceaf::preload {

// quick_exit was called: the handler that runs last ends the trace with this status.
void note_quick_exit(int status);

}  // namespace traceaf::preload
