// Merged sites as rows of a table: what summary, top and leaks have in common.
#pragma once

#include <vector>

#include "reader/views/document.h"
#include "reader/views/metric.h"
#include "reader/views/stacks.h"

namespace traceaf::reader::views {

Stack stack_of(const StackTree& tree, uint32_t step);
// "malloc" or "malloc, calloc".
Value entries_of(const MergedSite& site);
// Average lifetime of the freed blocks; none when none was freed.
Value average_lifetime(const MergedSite& site);

// Rows of the `limit` (0: all) first sites: bytes, share, blocks and entry points of one metric.
Table metric_table(const std::vector<MergedSite>& ranked, const StackTree& tree, Metric metric, const Amount& whole,
                   size_t limit);

}  // namespace traceaf::reader::views
