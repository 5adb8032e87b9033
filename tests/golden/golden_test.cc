// Each golden trace: its file is what its generator writes, and the reader makes of the file what the file says.
// TRACEAF_UPDATE_GOLDENS=1 writes the files anew.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "reader/read.h"
#include "reader/text.h"
#include "reader/validate.h"
#include "tests/golden/scenarios.h"

namespace traceaf::golden {
namespace {

std::string folder() { return TRACEAF_GOLDEN_DIR; }

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::map<std::string, uint64_t> summary(const reader::Profile& p) {
  return {{"events", p.events},
          {"allocations", p.allocated.count},
          {"allocated_bytes", p.allocated.bytes},
          {"frees", p.freed.count},
          {"inherited", p.inherited.count},
          {"live_blocks", p.live.count},
          {"live_bytes", p.live.bytes},
          {"peak_bytes", p.peak.bytes},
          {"peak_time_ns", p.peak_time_ns},
          {"temporary", p.temporary.count},
          {"moves", p.moves},
          {"unknown_frees", p.unknown_frees},
          {"frees_before", p.frees_before},
          {"double_births", p.double_births},
          {"reordered", p.reordered},
          {"unknown_types", p.unknown_types},
          {"sites", p.sites.size()},
          {"threads", p.threads.size()},
          {"spans", p.spans.size()},
          {"span_allocs", p.span_allocs},
          {"span_frees", p.span_frees},
          {"stacks_born", p.stacks_born},
          {"stacks_freed", p.stacks_freed},
          {"generations", p.generations.size()},
          {"duration_ns", p.duration_ns},
          {"complete", p.ending.complete ? 1 : 0},
          {"from_tail", p.ending.from_tail ? 1 : 0},
          {"lost_bytes", p.ending.lost_bytes}};
}

// Sums over sites, threads and blocks must agree with the totals, whatever the trace.
void check_conservation(const reader::Profile& p) {
  reader::Amount allocated, live, peak, blocks, temporary;
  const auto add = [](reader::Amount& to, const reader::Amount& more) {
    to.count += more.count;
    to.bytes += more.bytes;
  };
  for (const auto& site : p.sites) {
    add(allocated, site.allocated);
    add(live, site.live);
    add(peak, site.peak);
    add(temporary, site.temporary);
  }
  for (const auto& block : p.live_blocks) add(blocks, {1, block.size});
  EXPECT_EQ(allocated.count, p.allocated.count);
  EXPECT_EQ(allocated.bytes, p.allocated.bytes);
  EXPECT_EQ(live.count, p.live.count);
  EXPECT_EQ(live.bytes, p.live.bytes);
  EXPECT_EQ(peak.count, p.peak.count);
  EXPECT_EQ(peak.bytes, p.peak.bytes);
  EXPECT_EQ(blocks.count, p.live.count);
  EXPECT_EQ(blocks.bytes, p.live.bytes);
  EXPECT_EQ(temporary.count, p.temporary.count);
}

class GoldenTrace : public ::testing::TestWithParam<Scenario> {};

TEST_P(GoldenTrace, IsWhatItsGeneratorWrites) {
  const std::string path = folder() + "/" + GetParam().name + ".txt";
  const std::string text = golden_text(GetParam().build());
  if (getenv("TRACEAF_UPDATE_GOLDENS") != nullptr) std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(read_file(path), text) << "run with TRACEAF_UPDATE_GOLDENS=1 when the change is wanted";
}

TEST_P(GoldenTrace, ReadsAsExpected) {
  std::string wrong;
  const Golden golden = parse_golden(read_file(folder() + "/" + GetParam().name + ".txt"), &wrong);
  ASSERT_TRUE(wrong.empty()) << wrong;
  EXPECT_EQ(golden.trace, GetParam().build().trace) << "the text stands for other bytes";

  std::string complaints;
  auto profile = reader::read_profile_bytes(golden.trace, tail_bytes(golden), "golden");
  if (profile.ok()) {
    complaints += profile.value().ending.note + "\n";
    check_conservation(profile.value());
    const auto numbers = summary(profile.value());
    for (const auto& [name, value] : golden.expect) {
      ASSERT_TRUE(numbers.contains(name)) << name;
      EXPECT_EQ(numbers.at(name), value) << name;
    }
  } else {
    complaints += profile.error().text() + "\n";
    EXPECT_TRUE(golden.expect.empty());
  }
  auto report = reader::validate_bytes(golden.trace, "golden");
  ASSERT_TRUE(report.ok()) << report.error().text();
  for (const auto& finding : report.value().findings) complaints += finding.text() + "\n";

  if (golden.failure.empty()) {
    EXPECT_TRUE(profile.ok() && profile.value().ending.complete) << complaints;
    EXPECT_TRUE(report.value().ok()) << complaints;
  } else {
    EXPECT_TRUE(std::regex_search(complaints, std::regex(golden.failure))) << complaints;
    EXPECT_TRUE(!report.value().ok() || !profile.ok() || !profile.value().ending.complete) << "nothing failed";
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTrace, ::testing::ValuesIn(scenarios()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(GoldenFolder, HasAFileForEachScenarioAndNoOther) {
  std::set<std::string> files, names;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() == ".txt" && entry.path().filename() != "CMakeLists.txt")
      files.insert(entry.path().stem());
  }
  for (const auto& scenario : scenarios()) names.insert(scenario.name);
  EXPECT_EQ(files, names);
}

}  // namespace
}  // namespace traceaf::golden
