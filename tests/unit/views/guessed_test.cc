// Guessed frames as a reader of a report sees them: a mark, one explanation, a member in JSON.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "emitter/wire/entries.h"
#include "reader/views/views.h"
#include "sample_profile.h"

namespace traceaf::reader::views {
namespace {

using nlohmann::json;
using test::as_json;
using test::as_text;
using test::Sample;

constexpr const char* kMeans = "[guessed]: found by a frame pointer";

// main called `crossing` over code without tables, and `crossing` called itself as it should.
Sample crossed() {
  Sample s;
  constexpr auto kComplete = static_cast<uint32_t>(wire::NodeRoot::kComplete);
  const uint32_t main = s.frame(kComplete, "main", "/src/main.c", 80);
  const uint32_t guessed =
      s.inlined(main, {{"inner", "/src/cross.c", 7, 0, true}, {"crossing", "/src/cross.c", 9, 0, false}});
  s.profile.nodes[guessed].guessed = true;
  const uint32_t jit = s.frame(guessed, "jit");
  s.profile.nodes.push_back(s.profile.nodes[guessed]);  // the same call where tables led there
  s.profile.nodes.back().guessed = false;
  const auto known = static_cast<uint32_t>(s.profile.nodes.size() - 1);
  s.site(jit, static_cast<uint8_t>(wire::Entry::k_malloc), 1000, 3, 3, 3);
  s.site(known, static_cast<uint8_t>(wire::Entry::k_malloc), 10, 3, 3, 3);
  s.total();
  return s;
}

size_t times(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

ViewOptions options(bool full = false) {
  ViewOptions options;
  options.file = "x.traf";
  options.full = full;
  return options;
}

TEST(Guessed, OnlyTheInnermostFrameOfTheGuessIsMarked) {
  const Sample s = crossed();
  const Names names = s.names();
  const StackTree tree(s.profile, names);
  const auto frames = tree.frames_from(tree.leaf_of(s.profile.sites[0].node));
  ASSERT_EQ(frames.size(), 4U);
  EXPECT_FALSE(frames[0]->guessed);
  EXPECT_EQ(frames[1]->function, "inner");
  EXPECT_TRUE(frames[1]->guessed);
  EXPECT_FALSE(frames[2]->guessed);
  EXPECT_FALSE(frames[3]->guessed);
  for (const Frame* frame : tree.frames_from(tree.leaf_of(s.profile.sites[1].node))) EXPECT_FALSE(frame->guessed);
}

TEST(Guessed, TextMarksTheFrameAndSaysWhatThatMeans) {
  const Sample s = crossed();
  const Names names = s.names();
  for (const bool full : {false, true}) {
    const std::string leaks = as_text(leaks_view(s.profile, names, options(full)));
    EXPECT_EQ(times(leaks, full ? "inner  /src/cross.c:7 (inlined) [guessed]\n" : "inner  cross.c:7 [guessed]\n"), 1U)
        << leaks;
    EXPECT_EQ(times(leaks, "[guessed]"), 2U) << leaks;
    EXPECT_EQ(times(leaks, kMeans), 1U) << leaks;
  }
  for (const Document& view : {summary_view(s.profile, names, options()), top_view(s.profile, names, options()),
                               tree_view(s.profile, names, options())}) {
    const std::string text = as_text(view);
    EXPECT_EQ(times(text, kMeans), 1U) << text;
    EXPECT_GE(times(text, "[guessed]\n"), 1U) << text;
  }
}

TEST(Guessed, NothingIsExplainedWhereNoFrameIsGuessed) {
  Sample s = crossed();
  for (Node& node : s.profile.nodes) node.guessed = false;
  const Names names = s.names();
  EXPECT_EQ(times(as_text(leaks_view(s.profile, names, options(true))), "guessed"), 0U);
  EXPECT_EQ(times(as_json(leaks_view(s.profile, names, options(true))), "guessed"), 0U);
}

TEST(Guessed, JsonHasItWhereItIsTrue) {
  const Sample s = crossed();
  const Names names = s.names();
  const json leaks = json::parse(as_json(leaks_view(s.profile, names, options(true))));
  const json& stack = leaks["sites"][0]["stack"];
  ASSERT_EQ(stack.size(), 4U);
  for (size_t i = 0; i < stack.size(); ++i) EXPECT_EQ(stack[i].contains("guessed"), i == 1) << stack;
  EXPECT_EQ(stack[1]["guessed"], true);
  EXPECT_EQ(leaks["sites"][0]["stack_complete"], true);
  const json tree = json::parse(as_json(tree_view(s.profile, names, options(true))));
  size_t marked = 0;
  for (const json& node : tree["nodes"]) marked += node.contains("guessed") ? 1U : 0U;
  EXPECT_EQ(marked, 1U);
}

}  // namespace
}  // namespace traceaf::reader::views
