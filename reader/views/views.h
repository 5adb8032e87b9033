// The views: pure functions from a profile and its names to a document. Each verb of traceaf-report is one of them.
#pragma once

#include <cstdint>
#include <string>

#include "reader/profile.h"
#include "reader/views/document.h"
#include "reader/views/metric.h"
#include "reader/views/names.h"

namespace traceaf::reader::views {

struct ViewOptions {
  std::string file;  // as the user named it, for the next command to try
  Metric metric = Metric::kPeak;
  size_t limit = 0;      // most rows, 0: all
  bool invert = false;   // tree: from the site to the callers
  double threshold = 1;  // tree: percent below which nodes are left out
  bool full = false;     // whole stacks with their plumbing
};

// One screen. At most 45 lines of text; `limit` is that of the site lists, 0: 5.
Document summary_view(const Profile& profile, const Names& names, const ViewOptions& options);
Document top_view(const Profile& profile, const Names& names, const ViewOptions& options);
Document tree_view(const Profile& profile, const Names& names, const ViewOptions& options);
Document leaks_view(const Profile& profile, const Names& names, const ViewOptions& options);
// Ranked by allocated bytes, allocations (count) or temporary allocations.
Document threads_view(const Profile& profile, const ViewOptions& options);
Document spans_view(const Profile& profile, const ViewOptions& options);
Document info_view(const Profile& profile, const Names& names, const ViewOptions& options);

}  // namespace traceaf::reader::views
