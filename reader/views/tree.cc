// View: the calling-context tree, from the thread's entry down or from the sites up.
#include <fmt/format.h>
#include <tsl/robin_map.h>

#include <algorithm>

#include "reader/views/stacks.h"
#include "reader/views/units.h"
#include "reader/views/views.h"
#include "reader/views/wording.h"

namespace traceaf::reader::views {
namespace {

void add(Amount& to, const Amount& from) {
  to.count += from.count;
  to.bytes += from.bytes;
}

// A stack that still has to be spread over the tree: the steps not yet walked and what they hold.
struct Path {
  std::vector<uint32_t> steps;  // in walking order
  Amount amount;
};

// What a node of the shown tree is made of: a frame, or a reason why there is none.
struct Group {
  const Frame* frame = nullptr;
  std::string label;
  Amount total;
  std::vector<size_t> paths;
};

class Builder {
 public:
  Builder(const StackTree& tree, const MetricSpec& spec, const Amount& whole, double threshold)
      : tree_(tree), spec_(spec), least_(threshold / 100 * static_cast<double>(spec.value(whole))) {}

  void add_path(Path path) { paths_.push_back(std::move(path)); }

  // Depth first with an explicit stack: as deep as the deepest call stack.
  std::vector<TreeRow> run() {
    std::vector<size_t> all(paths_.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    TreeRow top;
    top.label = "all";
    for (const Path& path : paths_) add(top.total, path.amount);
    rows_.push_back(top);
    struct Open {
      size_t row;
      size_t depth;
      std::vector<Group> groups;  // the next one last
      bool fork;
    };
    std::vector<Open> open;
    const auto push = [&](size_t row, size_t depth, const std::vector<size_t>& paths) {
      std::vector<Group> groups = split(rows_[row], depth, paths);
      const TreeRow& parent = rows_[row];
      const bool fork = groups.size() > 1 || parent.left_out != 0 || parent.self.count != 0 || row == 0;
      std::reverse(groups.begin(), groups.end());
      open.push_back({row, depth, std::move(groups), fork});
    };
    push(0, 0, all);
    while (!open.empty()) {
      Open& at = open.back();
      if (at.groups.empty()) {
        open.pop_back();
        continue;
      }
      const Group group = std::move(at.groups.back());
      at.groups.pop_back();
      TreeRow row;
      row.parent = static_cast<int64_t>(at.row);
      row.depth = static_cast<uint32_t>(at.depth + 1);
      row.indent = rows_[at.row].indent + (at.fork ? 1 : 0);
      row.branch = at.fork;
      row.frame = group.frame;
      row.label = group.label;
      row.total = group.total;
      rows_.push_back(std::move(row));
      push(rows_.size() - 1, at.depth + 1, group.paths);
    }
    return std::move(rows_);
  }

 private:
  // Groups `paths` by their step number `depth`; what ends before it is `row`'s own, what is too small is left out.
  std::vector<Group> split(TreeRow& row, size_t depth, const std::vector<size_t>& paths) {
    std::vector<Group> groups;
    tsl::robin_map<uint64_t, size_t> index;
    for (const size_t p : paths) {
      const Path& path = paths_[p];
      if (depth == path.steps.size()) {
        add(row.self, path.amount);
        continue;
      }
      const uint32_t step = path.steps[depth];
      const bool root = StackTree::is_root(step);
      const uint64_t key = root ? uint64_t{1} << 32 | step : tree_.steps()[step].frame;
      const auto [at, added] = index.try_emplace(key, groups.size());
      if (added) {
        Group& group = groups.emplace_back();
        if (root) {
          group.label = root_label(step);
        } else {
          group.frame = &tree_.names().frames[tree_.steps()[step].frame];
        }
      }
      Group& group = groups[at->second];
      add(group.total, path.amount);
      group.paths.push_back(p);
    }
    std::erase_if(groups, [&](const Group& group) {
      if (static_cast<double>(spec_.value(group.total)) >= least_) return false;
      ++row.left_out;
      add(row.left_out_total, group.total);
      return true;
    });
    std::sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) { return before(a, b); });
    return groups;
  }

  bool before(const Group& a, const Group& b) const {
    if (spec_.value(a.total) != spec_.value(b.total)) return spec_.value(a.total) > spec_.value(b.total);
    const auto text = [](const Group& g) { return g.frame == nullptr ? g.label : g.frame->function; };
    const std::string x = text(a), y = text(b);
    if (x != y) return x < y;
    if (a.frame == nullptr || b.frame == nullptr) return a.frame == nullptr && b.frame != nullptr;
    if (a.frame->file != b.frame->file) return a.frame->file < b.frame->file;
    if (a.frame->line != b.frame->line) return a.frame->line < b.frame->line;
    if (a.frame->module != b.frame->module) return a.frame->module < b.frame->module;
    return b.frame->guessed && !a.frame->guessed;
  }

  const StackTree& tree_;
  const MetricSpec& spec_;
  const double least_;
  std::vector<Path> paths_;
  std::vector<TreeRow> rows_;
};

// Steps of a stack in walking order. A root says something only when the stack is not whole.
std::vector<uint32_t> steps_of(const StackTree& tree, uint32_t step, bool invert) {
  std::vector<uint32_t> steps;
  for (; !StackTree::is_root(step); step = tree.steps()[step].parent) steps.push_back(step);
  if (!root_label(step).empty()) steps.push_back(step);
  if (!invert) std::reverse(steps.begin(), steps.end());
  return steps;
}

}  // namespace

Document tree_view(const Profile& profile, const Names& names, const ViewOptions& options) {
  const StackTree stacks(profile, names);
  const MetricSpec& spec = spec_of(options.metric);
  const auto sites = ranked(merge_sites(profile, stacks), stacks, options.metric);
  Amount whole;
  for (const MergedSite& site : sites) add(whole, site.*spec.of_site);

  Builder builder(stacks, spec, whole, options.threshold);
  for (const MergedSite& site : sites) {
    const uint32_t step = options.full ? site.step : stacks.site_step(site.step);
    builder.add_path({steps_of(stacks, step, options.invert), site.*spec.of_site});
  }
  Document document;
  document.parts.emplace_back(Fields{"",
                                     "",
                                     {{"command", "", text(command_line(profile.process))},
                                      {"metric", "", text(std::string(spec.name))},
                                      {"inverted", "", flag(options.invert)},
                                      {"total_bytes", "", bytes(whole.bytes)},
                                      {"total_blocks", "", count(whole.count)}}});
  Tree tree;
  tree.key = "nodes";
  tree.title = fmt::format("{} in {}: {}, {}", format_bytes(whole.bytes), count_of(whole.count, "block"), spec.label,
                           options.invert ? "from the sites to their callers" : "from the threads' entries down");
  tree.by_bytes = spec.by_bytes;
  tree.whole = whole;
  tree.threshold = options.threshold;
  tree.full = options.full;
  tree.nothing = "nothing";
  if (!sites.empty()) tree.rows = builder.run();
  document.parts.emplace_back(std::move(tree));
  return document;
}

}  // namespace traceaf::reader::views
