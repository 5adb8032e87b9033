// docs/cli.md against the programs: every option and every JSON key is in it, and it promises none that is not there.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "reader/views/views.h"
#include "run_program.h"
#include "sample_profile.h"

namespace traceaf {
namespace {

std::string document() {
  std::ifstream in(CLI_DOCUMENT);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::set<std::string> long_options(const std::string& text) {
  std::set<std::string> found;
  const std::regex option("--[a-z][a-z-]*");
  for (auto at = std::sregex_iterator(text.begin(), text.end(), option); at != std::sregex_iterator(); ++at) {
    found.insert(at->str());
  }
  return found;
}

std::string all_help() {
  std::string text = test::run({TRACEAF_PROGRAM, "--help"}).out + test::run({TRACEAF_PROGRAM, "record", "--help"}).out +
                     test::run({REPORT_PROGRAM, "--help"}).out;
  for (const char* verb : {"summary", "top", "tree", "leaks", "threads", "spans", "info", "validate", "raw"}) {
    const test::Ran ran = test::run({REPORT_PROGRAM, verb, "--help"});
    EXPECT_EQ(ran.code(), 0) << verb;
    text += ran.out;
  }
  return text;
}

TEST(CliDocument, HasExactlyTheOptionsOfHelp) { EXPECT_EQ(long_options(document()), long_options(all_help())); }

TEST(CliDocument, HasEveryKeyOfJson) {
  const std::string text = document();
  const test::Sample s = test::whole_run();
  const auto names = s.names();
  const reader::views::ViewOptions options;
  using namespace reader::views;  // NOLINT: the views only
  for (const Document& view : {summary_view(s.profile, names, options), top_view(s.profile, names, options),
                               tree_view(s.profile, names, options), leaks_view(s.profile, names, options),
                               threads_view(s.profile, options)}) {
    const auto json = nlohmann::json::parse(test::as_json(view));
    const auto check = [&](const nlohmann::json& object) {
      for (const auto& [key, value] : object.items()) EXPECT_NE(text.find("`" + key + "`"), std::string::npos) << key;
    };
    check(json);
    for (const auto& [key, value] : json.items()) {
      if (value.is_array() && !value.empty() && value[0].is_object()) check(value[0]);
    }
  }
}

TEST(CliDocument, HelpNamesEveryVerbAndMetric) {
  const std::string help = test::run({REPORT_PROGRAM, "--help"}).out;
  for (const char* verb : {"summary", "top", "tree", "leaks", "threads", "spans", "info", "validate", "raw"}) {
    EXPECT_NE(help.find(std::string("  ") + verb + " "), std::string::npos) << verb;
  }
  const std::string top = test::run({REPORT_PROGRAM, "top", "--help"}).out;
  EXPECT_NE(top.find("peak|live|allocated|count|temporary"), std::string::npos) << top;
}

}  // namespace
}  // namespace traceaf
