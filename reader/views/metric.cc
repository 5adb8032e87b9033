// What a view counts (see metric.h).
#include "reader/views/metric.h"

#include <algorithm>

namespace traceaf::reader::views {
namespace {

// Order of two stacks by their text, innermost frame first.
int compare_stacks(const StackTree& tree, uint32_t a, uint32_t b) {
  while (a != b) {
    const bool a_ends = StackTree::is_root(a);
    const bool b_ends = StackTree::is_root(b);
    if (a_ends || b_ends) return a_ends && b_ends ? (a < b ? -1 : 1) : a_ends ? -1 : 1;
    const Frame& x = tree.names().frames[tree.steps()[a].frame];
    const Frame& y = tree.names().frames[tree.steps()[b].frame];
    if (const int order = x.function.compare(y.function); order != 0) return order;
    if (const int order = x.file.compare(y.file); order != 0) return order;
    if (x.line != y.line) return x.line < y.line ? -1 : 1;
    if (const int order = x.module.compare(y.module); order != 0) return order;
    if (x.guessed != y.guessed) return x.guessed ? 1 : -1;
    a = tree.steps()[a].parent;
    b = tree.steps()[b].parent;
  }
  return 0;
}

}  // namespace

std::vector<MergedSite> ranked(std::vector<MergedSite> sites, const StackTree& tree, Metric metric) {
  const MetricSpec& spec = spec_of(metric);
  std::erase_if(sites, [&](const MergedSite& site) {
    const Amount& amount = site.*spec.of_site;
    return amount.bytes == 0 && amount.count == 0;
  });
  std::sort(sites.begin(), sites.end(), [&](const MergedSite& a, const MergedSite& b) {
    const Amount& x = a.*spec.of_site;
    const Amount& y = b.*spec.of_site;
    const uint64_t first_x = spec.value(x), first_y = spec.value(y);
    if (first_x != first_y) return first_x > first_y;
    const uint64_t other_x = x.bytes + x.count, other_y = y.bytes + y.count;
    if (other_x != other_y) return other_x > other_y;
    return compare_stacks(tree, a.step, b.step) < 0;
  });
  return sites;
}

}  // namespace traceaf::reader::views
