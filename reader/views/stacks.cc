// The calling-context tree at source level and sites merged by it (see stacks.h).
#include "reader/views/stacks.h"

#include <tsl/robin_map.h>

#include <algorithm>

#include "emitter/wire/entries.h"

namespace traceaf::reader::views {
namespace {

struct KeyHash {
  size_t operator()(uint64_t key) const {
    key ^= key >> 29;
    key *= 0xbf58476d1ce4e5b9U;
    return static_cast<size_t>(key ^ (key >> 32));
  }
};

void add(Amount& to, const Amount& from) {
  to.count += from.count;
  to.bytes += from.bytes;
}

}  // namespace

StackTree::StackTree(const Profile& profile, const Names& names) : names_(names) {
  constexpr uint32_t kUnknown = ~uint32_t{0};
  constexpr uint32_t kOpen = kUnknown - 1;  // on the way to its root right now: seen again means a cycle
  for (uint32_t root = 0; root < wire::kFirstNode; ++root) steps_.push_back({root, kNoFrame});
  tsl::robin_map<uint64_t, uint32_t, KeyHash> children;
  leaf_of_.assign(std::max<size_t>(profile.nodes.size(), wire::kFirstNode), kUnknown);
  for (uint32_t root = 0; root < wire::kFirstNode; ++root) leaf_of_[root] = root;

  std::vector<uint32_t> way;
  for (uint32_t node = wire::kFirstNode; node < profile.nodes.size(); ++node) {
    uint32_t at = node;
    while (at < leaf_of_.size() && leaf_of_[at] == kUnknown) {
      leaf_of_[at] = kOpen;
      way.push_back(at);
      at = profile.nodes[at].defined ? profile.nodes[at].parent : 0;
    }
    uint32_t step = at < leaf_of_.size() && leaf_of_[at] != kOpen ? leaf_of_[at] : 0;
    for (; !way.empty(); way.pop_back()) {
      const uint32_t n = way.back();
      for (uint32_t i = names.begin[n + 1]; i-- > names.begin[n];) {
        const uint64_t key = uint64_t{step} << 32 | names.frame_of[i];
        const auto [found, added] = children.try_emplace(key, static_cast<uint32_t>(steps_.size()));
        if (added) steps_.push_back({step, names.frame_of[i]});
        step = found->second;
      }
      leaf_of_[n] = step;
    }
  }
}

std::vector<const Frame*> StackTree::frames_from(uint32_t step) const {
  std::vector<const Frame*> frames;
  for (; !is_root(step); step = steps_[step].parent) frames.push_back(&names_.frames[steps_[step].frame]);
  return frames;
}

uint32_t StackTree::root_of(uint32_t step) const {
  while (!is_root(step)) step = steps_[step].parent;
  return step;
}

uint32_t StackTree::site_step(uint32_t step) const {
  uint32_t first = step;  // the innermost that is no plumbing
  const std::string* module = nullptr;
  for (uint32_t at = step; !is_root(at); at = steps_[at].parent) {
    const Frame& frame = names_.frames[steps_[at].frame];
    if (frame.plumbing) continue;
    if (module == nullptr) {
      first = at;
      module = &frame.module;
    } else if (frame.module != *module) {
      break;
    }
    if (frame.named) return at;
  }
  return first;
}

std::string root_label(uint32_t root) {
  switch (static_cast<wire::NodeRoot>(root)) {
    case wire::NodeRoot::kNone:
      return "[no stack]";
    case wire::NodeRoot::kComplete:
      return {};
    case wire::NodeRoot::kDepthCap:
      return "[cut at the depth limit]";
    case wire::NodeRoot::kNoCfi:
      return "[cut at code without unwind information]";
    case wire::NodeRoot::kUnreadable:
      return "[cut at unreadable stack memory]";
  }
  return "[cut]";
}

namespace {

void add_stats(MergedSite& to, const MergedSite& from) {
  add(to.allocated, from.allocated);
  add(to.freed, from.freed);
  add(to.live, from.live);
  add(to.peak, from.peak);
  add(to.temporary, from.temporary);
  to.entries |= from.entries;
  to.first_birth_ns = std::min(to.first_birth_ns, from.first_birth_ns);
  to.last_birth_ns = std::max(to.last_birth_ns, from.last_birth_ns);
  to.lifetime_ns += from.lifetime_ns;
}

}  // namespace

std::vector<MergedSite> merge_sites(const Profile& profile, const StackTree& tree) {
  std::vector<MergedSite> merged;
  tsl::robin_map<uint32_t, uint32_t> index;
  for (const Site& site : profile.sites) {
    const uint32_t step = tree.leaf_of(site.node);
    const auto [at, added] = index.try_emplace(step, static_cast<uint32_t>(merged.size()));
    if (added) merged.emplace_back().step = step;
    const uint32_t entry = site.entry < 32 && wire::entry_name(site.entry) != "?" ? site.entry : 0;
    add_stats(merged[at->second], {step, uint32_t{1} << entry, site.allocated, site.freed, site.live, site.peak,
                                   site.temporary, site.first_birth_ns, site.last_birth_ns, site.lifetime_ns});
  }
  return merged;
}

std::vector<MergedSite> merge_places(const std::vector<MergedSite>& sites, const StackTree& tree) {
  std::vector<MergedSite> places;
  tsl::robin_map<FrameId, uint32_t> index;
  for (const MergedSite& site : sites) {
    const FrameId frame = tree.steps()[tree.site_step(site.step)].frame;
    const auto [at, added] = index.try_emplace(frame, static_cast<uint32_t>(places.size()));
    if (added) {
      places.push_back(site);
    } else {
      add_stats(places[at->second], site);
    }
  }
  return places;
}

std::vector<std::string> entry_names(uint32_t mask) {
  std::vector<std::string> names;
  for (uint32_t entry = 1; entry < 32; ++entry) {
    if ((mask >> entry & 1) != 0) names.emplace_back(wire::entry_name(entry));
  }
  if ((mask & 1) != 0) names.emplace_back("?");
  return names;
}

}  // namespace traceaf::reader::views
