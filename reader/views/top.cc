// View: the call stacks that hold most of one metric.
#include <fmt/format.h>

#include "reader/views/site_table.h"
#include "reader/views/units.h"
#include "reader/views/views.h"
#include "reader/views/wording.h"

namespace traceaf::reader::views {

Document top_view(const Profile& profile, const Names& names, const ViewOptions& options) {
  const StackTree tree(profile, names);
  const MetricSpec& spec = spec_of(options.metric);
  const Amount& whole = profile.*spec.of_profile;
  const auto sites = ranked(merge_sites(profile, tree), tree, options.metric);

  Document document;
  document.parts.emplace_back(Fields{"",
                                     "",
                                     {{"command", "", text(command_line(profile.process))},
                                      {"metric", "", text(std::string(spec.name))},
                                      {"total_bytes", "", bytes(whole.bytes)},
                                      {"total_blocks", "", count(whole.count)},
                                      {"sites_total", "", count(sites.size())}}});
  Table table;
  table.key = "sites";
  table.title =
      fmt::format("{} in {}: {}, by call stack", format_bytes(whole.bytes), count_of(whole.count, "block"), spec.label);
  table.stacks = true;
  table.depth = options.full ? 0 : 4;
  table.nothing = "nothing";
  table.columns = {{"bytes", "bytes"},      {"share_percent", "share"}, {"blocks", "blocks"}, {"entries", "by"},
                   {"live_bytes", ""},      {"live_blocks", ""},        {"peak_bytes", ""},   {"peak_blocks", ""},
                   {"allocated_bytes", ""}, {"allocations", ""},        {"freed_bytes", ""},  {"frees", ""},
                   {"temporary", ""},       {"average_lifetime_ns", ""}};
  const size_t shown = options.limit == 0 ? sites.size() : std::min(options.limit, sites.size());
  for (size_t i = 0; i < shown; ++i) {
    const MergedSite& site = sites[i];
    const Amount& amount = site.*spec.of_site;
    table.rows.push_back(
        {{bytes(amount.bytes), share(spec.value(amount), spec.value(whole)), count(amount.count), entries_of(site),
          bytes(site.live.bytes), count(site.live.count), bytes(site.peak.bytes), count(site.peak.count),
          bytes(site.allocated.bytes), count(site.allocated.count), bytes(site.freed.bytes), count(site.freed.count),
          count(site.temporary.count), average_lifetime(site)},
         stack_of(tree, site.step)});
  }
  table.more = left_out(shown, sites.size());
  document.parts.emplace_back(std::move(table));
  return document;
}

}  // namespace traceaf::reader::views
