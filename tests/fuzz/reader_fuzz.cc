// libFuzzer target of the reader. The first byte of the input chooses what the rest is:
//   0  a trace, plain or zstd: profile, validation, and for a plain one text and back
//   1  a 4-byte length, a trace of that length, a tail
//   2  the text form
// Aborts where an answer contradicts itself.
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "emitter/wire/events.h"
#include "reader/read.h"
#include "reader/text.h"
#include "reader/validate.h"

namespace traceaf::reader {
namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "contradiction: %s\n", what);
  abort();
}

void check_profile(const Profile& p) {
  Amount live, allocated, peak;
  for (const auto& site : p.sites) {
    live.count += site.live.count;
    live.bytes += site.live.bytes;
    allocated.count += site.allocated.count;
    peak.bytes += site.peak.bytes;
    require(site.node < p.nodes.size(), "node of a site");
  }
  require(live.count == p.live.count && live.bytes == p.live.bytes, "live blocks by site");
  require(live.count == p.live_blocks.size(), "live blocks by address");
  require(allocated.count == p.allocated.count, "births by site");
  require(peak.bytes == p.peak.bytes, "peak by site");
  require(p.timeline.size() <= 2048, "points of the timeline");
  require(p.ending.complete == p.ending.note.empty(), "a note exactly where the trace is incomplete");
  for (const auto& block : p.live_blocks) require(block.site < p.sites.size(), "site of a block");
  for (size_t i = 0; i < p.nodes.size(); ++i) {
    require(p.nodes[i].parent < p.nodes.size() && p.nodes[i].module < p.modules.size(), "indices of a node");
    size_t steps = 0;
    for (size_t at = i; at >= wire::kFirstNode; at = p.nodes[at].parent)
      require(++steps <= p.nodes.size(), "nodes are a forest");
  }
}

void check_trace(std::span<const uint8_t> trace, std::span<const uint8_t> tail) {
  auto profile = read_profile_bytes(trace, tail, "f");
  if (profile.ok()) {
    check_profile(profile.value());
  } else {
    require(!profile.error().text().empty(), "an error says something");
  }
  auto report = validate_bytes(trace, "f");
  if (report.ok()) {
    for (const auto& finding : report.value().findings) require(!finding.message.empty(), "a finding says something");
  }
}

void check_text(std::span<const uint8_t> trace) {
  if (trace.size() < sizeof wire::kHeader || memcmp(trace.data(), wire::kHeader, sizeof wire::kHeader) != 0) return;
  std::string text;
  (void)bytes_to_text(trace, "f", [&](std::string_view piece) {
    text += piece;
    return true;
  });
  auto again = text_to_bytes(text, "f");
  require(again.ok(), "our own text is read");
  require(std::equal(trace.begin(), trace.end(), again.value().begin(), again.value().end()),
          "bytes to text to bytes is the identity");
}

}  // namespace
}  // namespace traceaf::reader

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace traceaf::reader;
  if (size == 0) return 0;
  const std::span<const uint8_t> rest(data + 1, size - 1);
  if (data[0] == 0) {
    check_trace(rest, {});
    check_text(rest);
  } else if (data[0] == 1 && rest.size() >= 4) {
    uint32_t length = 0;
    memcpy(&length, rest.data(), 4);
    const size_t trace = std::min<size_t>(length, rest.size() - 4);
    check_trace(rest.subspan(4, trace), rest.subspan(4 + trace));
  } else if (data[0] == 2) {
    auto bytes = text_to_bytes({reinterpret_cast<const char*>(rest.data()), rest.size()}, "f");
    if (bytes.ok()) {
      check_trace(bytes.value(), {});
      check_text(bytes.value());
    }
  }
  return 0;
}
