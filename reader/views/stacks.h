// The calling-context tree at source level: nodes of the trace that have the same functions, files and lines on the
// whole way to the thread's entry are one node here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reader/profile.h"
#include "reader/views/names.h"

namespace traceaf::reader::views {

// A parent always stands before its children. Nodes [0, wire::kFirstNode) are the roots, one for each wire::NodeRoot.
class StackTree {
 public:
  StackTree(const Profile& profile, const Names& names);

  struct Step {
    uint32_t parent;  // a root is its own parent
    FrameId frame;    // kNoFrame for roots
  };
  static constexpr FrameId kNoFrame = ~FrameId{0};

  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  // The innermost step of trace node `node`; root kNone for a node that does not exist.
  [[nodiscard]] uint32_t leaf_of(uint32_t node) const { return node < leaf_of_.size() ? leaf_of_[node] : 0; }
  [[nodiscard]] static bool is_root(uint32_t step) { return step < wire::kFirstNode; }
  // Frames from `step` to the thread's entry, innermost first.
  [[nodiscard]] std::vector<const Frame*> frames_from(uint32_t step) const;
  [[nodiscard]] uint32_t root_of(uint32_t step) const;
  // The step after which the site of `step` is named: the innermost that is no plumbing and, of those in the same
  // module, the innermost with a function name. `step` itself when all is plumbing.
  [[nodiscard]] uint32_t site_step(uint32_t step) const;
  [[nodiscard]] const Names& names() const { return names_; }

 private:
  const Names& names_;
  std::vector<Step> steps_;
  std::vector<uint32_t> leaf_of_;
};

// Why the stacks below this root are not whole, as a frame in brackets; empty for whole stacks.
std::string root_label(uint32_t root);

// Sites with the same stack at source level, whatever entry points and sizes they came from.
struct MergedSite {
  uint32_t step = 0;     // innermost step in the StackTree
  uint32_t entries = 0;  // bit n: wire::Entry n; bit 0: an entry this program does not know
  Amount allocated, freed, live, peak, temporary;
  uint64_t first_birth_ns = ~uint64_t{0}, last_birth_ns = 0;
  uint64_t lifetime_ns = 0;
};
std::vector<MergedSite> merge_sites(const Profile& profile, const StackTree& tree);
// The sites of one place (the frame that names them, whatever its callers) as one. `sites` are ranked; the first of a
// place lends it its stack. The result keeps the order of the first ones: rank it again.
std::vector<MergedSite> merge_places(const std::vector<MergedSite>& sites, const StackTree& tree);
// Names of the entry points in a MergedSite's mask.
std::vector<std::string> entry_names(uint32_t mask);

}  // namespace traceaf::reader::views
