// Span events of emitter/spans written through a section (see span_sink.h).
#include "emitter/span_sink.h"

#include "emitter/clock.h"
#include "emitter/session.h"

namespace traceaf::emitter {
namespace {

uint64_t span_id(uintptr_t base) { return (base - facts().min_addr) / facts().page_size; }

void write_span(void* context, const spans::Span& span, wire::Ev type) {
  auto& section = *static_cast<Section*>(context);
  const uint64_t id = span_id(span.base);
  RowBytes row;
  row.number(id).number(static_cast<uint64_t>(span.source)).number(span.inferred ? 1 : 0).number(span.object_size);
  section.row(wire::Row::kSpanInfo, row);
  section.event(type, section.now(), id, span.bytes / facts().page_size, span.kind_class);
}

void on_alloc(void* context, const spans::Span& span) { write_span(context, span, wire::Ev::kSpanAlloc); }
void on_exists(void* context, const spans::Span& span) { write_span(context, span, wire::Ev::kSpan); }
void on_free(void* context, uintptr_t base) {
  auto& section = *static_cast<Section*>(context);
  section.event(wire::Ev::kSpanFree, section.now(), span_id(base));
}

}  // namespace

spans::Sink span_sink(Section& section) { return {&section, on_alloc, on_free, on_exists}; }

void snapshot_spans(Section& section) {
  spans::Sink sink = span_sink(section);
  spans::snapshot(sink);
}

}  // namespace traceaf::emitter
