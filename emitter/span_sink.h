// Span events of emitter/spans written through a section.
#pragma once

#include "emitter/section.h"
#include "emitter/spans/spans.h"

namespace traceaf::emitter {

// Valid while `section` is.
spans::Sink span_sink(Section& section);
// Span events for everything in the set.
void snapshot_spans(Section& section);

}  // namespace traceaf::emitter
