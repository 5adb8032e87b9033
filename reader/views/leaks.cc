// View: the blocks that are live at the end, by call stack.
#include <fmt/format.h>

#include <algorithm>

#include "reader/views/site_table.h"
#include "reader/views/units.h"
#include "reader/views/views.h"
#include "reader/views/wording.h"

namespace traceaf::reader::views {

Document leaks_view(const Profile& profile, const Names& names, const ViewOptions& options) {
  const StackTree tree(profile, names);
  const auto sites = ranked(merge_sites(profile, tree), tree, Metric::kLive);

  Document document;
  document.parts.emplace_back(Fields{"",
                                     "",
                                     {{"command", "", text(command_line(profile.process))},
                                      {"complete", "", flag(profile.ending.complete)},
                                      {"end", "", text(end_reason_name(profile.ending))},
                                      {"live_bytes", "", bytes(profile.live.bytes)},
                                      {"live_blocks", "", count(profile.live.count)},
                                      {"inherited_blocks", "", count(profile.inherited.count)},
                                      {"sites_total", "", count(sites.size())}}});
  Table table;
  table.key = "sites";
  table.title = fmt::format("{}: {} in {}", live_heading(profile.ending), format_bytes(profile.live.bytes),
                            count_of(profile.live.count, "block"));
  table.stacks = true;
  table.depth = options.full ? 0 : 6;
  table.nothing = "nothing";
  table.columns = {{"live_bytes", "bytes"},    {"share_percent", "share"},  {"live_blocks", "blocks"},
                   {"entries", "by"},          {"first_birth_ns", "first"}, {"last_birth_ns", "last birth"},
                   {"allocated_bytes", ""},    {"allocations", ""},         {"frees", ""},
                   {"average_lifetime_ns", ""}};
  const size_t shown = options.limit == 0 ? sites.size() : std::min(options.limit, sites.size());
  for (size_t i = 0; i < shown; ++i) {
    const MergedSite& site = sites[i];
    table.rows.push_back(
        {{bytes(site.live.bytes), share(site.live.bytes, profile.live.bytes), count(site.live.count), entries_of(site),
          ns(std::min(site.first_birth_ns, site.last_birth_ns)), ns(site.last_birth_ns), bytes(site.allocated.bytes),
          count(site.allocated.count), count(site.freed.count), average_lifetime(site)},
         stack_of(tree, site.step)});
  }
  table.more = left_out(shown, sites.size());
  document.parts.emplace_back(std::move(table));
  if (!sites.empty()) {
    Lines note;
    note.lines.push_back({"", "", Tone::kPlain});
    note.lines.push_back({"",
                          profile.ending.has_end
                              ? "A block that the program still used when it ended counts too."
                              : "The program had not ended here: most of these blocks may still be in use.",
                          Tone::kQuiet});
    document.parts.emplace_back(std::move(note));
  }
  return document;
}

}  // namespace traceaf::reader::views
