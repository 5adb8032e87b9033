// Spans (see span_model.h).
#include "reader/span_model.h"

#include <algorithm>
#include <vector>

namespace traceaf::reader {

void SpanModel::drop(const SpanStats& span) {
  --alive_.count;
  alive_.bytes -= span.bytes;
}

void SpanModel::add(uint64_t base, uint64_t bytes, uint64_t kind_class, const SpanInfoRow& info, bool born) {
  SpanStats span;
  span.source = info.source;
  span.base = base;
  span.bytes = bytes;
  span.kind_class = kind_class;
  span.object_size = info.object_size;
  span.inferred = info.inferred;
  if (born) ++profile_.span_allocs;
  const auto [it, is_new] = spans_.try_emplace(base, span);
  if (!is_new) {
    drop(it->second);
    it.value() = span;
  }
  ++alive_.count;
  alive_.bytes += bytes;
  if (alive_.count > profile_.spans_peak.count) profile_.spans_peak = alive_;
}

void SpanModel::remove(uint64_t base) {
  ++profile_.span_frees;
  const auto it = spans_.find(base);
  if (it == spans_.end()) return;
  drop(it->second);
  spans_.erase(it);
}

void SpanModel::restart() {
  spans_.clear();
  alive_ = {};
}

void SpanModel::finish() {
  profile_.spans.reserve(spans_.size());
  for (const auto& [base, span] : spans_) profile_.spans.push_back(span);
  std::sort(profile_.spans.begin(), profile_.spans.end(),
            [](const SpanStats& a, const SpanStats& b) { return a.base < b.base; });
  // A sweep over addresses; `open` holds the spans around the present one, outermost first.
  std::vector<size_t> open;
  size_t next = 0;
  const auto holds = [&](size_t i, uint64_t address) {
    return address - profile_.spans[i].base < profile_.spans[i].bytes;
  };
  for (const LiveBlock& block : profile_.live_blocks) {
    while (next < profile_.spans.size() && profile_.spans[next].base <= block.address) {
      while (!open.empty() && !holds(open.back(), profile_.spans[next].base)) open.pop_back();
      open.push_back(next++);
    }
    while (!open.empty() && !holds(open.back(), block.address)) open.pop_back();
    if (open.empty()) continue;
    Amount& live = profile_.spans[open.back()].live;
    ++live.count;
    live.bytes += block.size;
  }
}

}  // namespace traceaf::reader
