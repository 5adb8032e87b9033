// What a view counts: --metric.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "reader/profile.h"
#include "reader/views/stacks.h"

namespace traceaf::reader::views {

enum class Metric : uint8_t { kLive, kPeak, kAllocated, kCount, kTemporary };

struct MetricSpec {
  Metric metric;
  std::string_view name;   // as in --metric
  std::string_view label;  // as shown
  bool by_bytes;           // ranked by bytes, or by number of blocks
  Amount MergedSite::*of_site;
  Amount Profile::*of_profile;

  [[nodiscard]] uint64_t value(const Amount& amount) const { return by_bytes ? amount.bytes : amount.count; }
};

inline constexpr MetricSpec kMetrics[] = {
    {Metric::kLive, "live", "live at the end", true, &MergedSite::live, &Profile::live},
    {Metric::kPeak, "peak", "live at the peak", true, &MergedSite::peak, &Profile::peak},
    {Metric::kAllocated, "allocated", "allocated", true, &MergedSite::allocated, &Profile::allocated},
    {Metric::kCount, "count", "allocations", false, &MergedSite::allocated, &Profile::allocated},
    {Metric::kTemporary, "temporary", "temporary", false, &MergedSite::temporary, &Profile::temporary},
};
constexpr const MetricSpec& spec_of(Metric metric) { return kMetrics[static_cast<uint8_t>(metric)]; }

// Largest first; equal values by the other half of the amount, then by the stacks' text, so that the order never
// depends on how the trace happened to be written. Sites with nothing of the metric are dropped.
std::vector<MergedSite> ranked(std::vector<MergedSite> sites, const StackTree& tree, Metric metric);

}  // namespace traceaf::reader::views
