// Span events of emitter/spans written through a section.
#pragma once

#include "emitter/section.h"
#include "emitter/spans/spans.h"

namespace traceaf::emitter {

// Valid while `section` is.
spans::Sink span_sink(Section& section);
// Lets the span set agree with /proc/self/maps, as a thread that is in no section.
void reconcile_spans();
// Span events for everything in the set.
void snapshot_spans(Section& section);

}  // namespace traceaf::emitter
