// Profiles and names made by hand, for views to show.
#pragma once

#include <map>
#include <string>

#include "reader/profile.h"
#include "reader/views/document.h"
#include "reader/views/names.h"

namespace traceaf::test {

// A profile under construction whose nodes are named as they are added.
struct Sample {
  reader::Profile profile;
  std::map<uint64_t, std::vector<reader::SourceFrame>> named;  // by offset
  std::vector<reader::ModuleCoverage> coverage;

  Sample();
  // A frame called from node `parent` (a wire::NodeRoot for the outermost); returns its node.
  uint32_t frame(uint32_t parent, const std::string& function, const std::string& file = {}, uint32_t line = 0);
  // A frame into which others were inlined, innermost first.
  uint32_t inlined(uint32_t parent, std::vector<reader::SourceFrame> frames);
  // A site whose live and peak are what is given, all blocks of `size` bytes.
  reader::Site& site(uint32_t node, uint8_t entry, uint64_t size, uint64_t allocated, uint64_t live, uint64_t peak);
  // Sums of the sites into the totals of the profile.
  void total();
  [[nodiscard]] reader::views::Names names() const;
};

// Two threads, three sites, one of them through std::vector; everything a summary shows.
Sample whole_run();

std::string as_text(const reader::views::Document& document);
std::string as_json(const reader::views::Document& document);

}  // namespace traceaf::test
