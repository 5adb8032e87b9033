// Merged sites as rows of a table (see site_table.h).
#include "reader/views/site_table.h"

#include <algorithm>

#include "reader/views/wording.h"

namespace traceaf::reader::views {

Stack stack_of(const StackTree& tree, uint32_t step) {
  Stack stack;
  stack.frames = tree.frames_from(step);
  const uint32_t named = tree.site_step(step);
  for (uint32_t at = step; at != named; at = tree.steps()[at].parent) ++stack.first;
  stack.cut = root_label(tree.root_of(step));
  return stack;
}

Value entries_of(const MergedSite& site) { return list(entry_names(site.entries)); }

Value average_lifetime(const MergedSite& site) {
  return site.freed.count == 0 ? none() : ns(site.lifetime_ns / site.freed.count);
}

Table metric_table(const std::vector<MergedSite>& ranked, const StackTree& tree, Metric metric, const Amount& whole,
                   size_t limit) {
  const MetricSpec& spec = spec_of(metric);
  Table table;
  table.stacks = true;
  table.columns = {{"bytes", "bytes"}, {"share_percent", "share"}, {"blocks", "blocks"}, {"entries", "by"}};
  const size_t shown = limit == 0 ? ranked.size() : std::min(limit, ranked.size());
  for (size_t i = 0; i < shown; ++i) {
    const Amount& amount = ranked[i].*spec.of_site;
    table.rows.push_back({{bytes(amount.bytes), share(spec.value(amount), spec.value(whole)), count(amount.count),
                           entries_of(ranked[i])},
                          stack_of(tree, ranked[i].step)});
  }
  table.more = left_out(shown, ranked.size());
  return table;
}

}  // namespace traceaf::reader::views
