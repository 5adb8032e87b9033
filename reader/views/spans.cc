// View: the address ranges that hold the heap at the end, by where they came from, and the largest of them.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reader/views/units.h"
#include "reader/views/views.h"
#include "reader/views/wording.h"

namespace traceaf::reader::views {
namespace {

std::string source_name(wire::SpanSource source) {
  switch (source) {
    case wire::SpanSource::kUnknown:
      return "unknown";
    case wire::SpanSource::kBrk:
      return "main heap (brk)";
    case wire::SpanSource::kArena:
      return "arena of glibc";
    case wire::SpanSource::kMmapChunk:
      return "single block (mmap)";
    case wire::SpanSource::kMmap:
      return "mmap by the program";
    case wire::SpanSource::kMmapFile:
      return "mapped file";
    case wire::SpanSource::kSlab:
      return "slab of jemalloc";
    case wire::SpanSource::kLarge:
      return "large extent of jemalloc";
    case wire::SpanSource::kAllocator:
      return "mmap by an allocator";
  }
  return "unknown";
}

struct Sum {
  uint64_t spans = 0, bytes = 0;
  Amount live;
};

}  // namespace

Document spans_view(const Profile& profile, const ViewOptions& options) {
  std::map<wire::SpanSource, Sum> by_source;
  std::vector<const SpanStats*> spans;
  uint64_t total = 0;
  for (const SpanStats& span : profile.spans) {
    spans.push_back(&span);
    total += span.bytes;
    Sum& sum = by_source[span.source];
    ++sum.spans;
    sum.bytes += span.bytes;
    sum.live.count += span.live.count;
    sum.live.bytes += span.live.bytes;
  }
  std::vector<std::pair<wire::SpanSource, Sum>> sums(by_source.begin(), by_source.end());
  std::stable_sort(sums.begin(), sums.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  std::sort(spans.begin(), spans.end(), [](const SpanStats* a, const SpanStats* b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->base < b->base;
  });

  Document document;
  document.parts.emplace_back(Fields{"",
                                     "",
                                     {{"command", "", text(command_line(profile.process))},
                                      {"spans_total", "", count(spans.size())},
                                      {"spans_bytes", "", bytes(total)},
                                      {"spans_peak", "", count(profile.spans_peak.count)},
                                      {"spans_peak_bytes", "", bytes(profile.spans_peak.bytes)},
                                      {"span_allocs", "", count(profile.span_allocs)},
                                      {"span_frees", "", count(profile.span_frees)}}});
  Table sources;
  sources.key = "by_source";
  sources.title = fmt::format("{} of {} at the end, at most {} at once", count_of(spans.size(), "span"),
                              format_bytes(total), format_count(profile.spans_peak.count));
  sources.nothing = "nothing";
  sources.columns = {{"source", "source"},         {"spans", "spans"},       {"bytes", "bytes"},
                     {"live_bytes", "live bytes"}, {"used_percent", "used"}, {"live_blocks", "live blocks"}};
  for (const auto& [source, sum] : sums) {
    sources.rows.push_back({{text(source_name(source)), count(sum.spans), bytes(sum.bytes), bytes(sum.live.bytes),
                             share(sum.live.bytes, sum.bytes), count(sum.live.count)},
                            {}});
  }
  document.parts.emplace_back(std::move(sources));

  Table table;
  table.key = "spans";
  table.title = spans.empty() ? "" : "Largest first";
  table.columns = {{"address", "address"},       {"bytes", "bytes"},       {"source", "source"},
                   {"live_bytes", "live bytes"}, {"used_percent", "used"}, {"live_blocks", "live blocks"},
                   {"object_size_bytes", ""},    {"kind_class", ""},       {"inferred", "inferred"}};
  const size_t shown = options.limit == 0 ? spans.size() : std::min(options.limit, spans.size());
  for (size_t i = 0; i < shown; ++i) {
    const SpanStats& s = *spans[i];
    table.rows.push_back(
        {{address(s.base), bytes(s.bytes), text(source_name(s.source)), bytes(s.live.bytes),
          share(s.live.bytes, s.bytes), count(s.live.count), bytes(s.object_size), id(s.kind_class), flag(s.inferred)},
         {}});
  }
  table.more = left_out(shown, spans.size());
  document.parts.emplace_back(std::move(table));
  return document;
}

}  // namespace traceaf::reader::views
