// Stacks at source level: merging, plumbing, broken trees, order.
#include "reader/views/stacks.h"

#include <gtest/gtest.h>

#include "emitter/wire/entries.h"
#include "reader/views/metric.h"
#include "reader/views/site_table.h"
#include "sample_profile.h"

namespace traceaf::reader::views {
namespace {

using test::Sample;
constexpr auto kComplete = static_cast<uint32_t>(wire::NodeRoot::kComplete);
constexpr auto kMalloc = static_cast<uint8_t>(wire::Entry::k_malloc);
constexpr auto kCalloc = static_cast<uint8_t>(wire::Entry::k_calloc);

std::vector<std::string> functions(const Stack& stack) {
  std::vector<std::string> names;
  for (const Frame* frame : stack.frames) names.push_back(frame->function);
  return names;
}

TEST(Stacks, SitesWithTheSameSourceStackAreOne) {
  Sample s;
  const uint32_t main = s.frame(kComplete, "main", "m.c", 1);
  const uint32_t a = s.frame(main, "f", "f.c", 7);
  const uint32_t b = s.frame(main, "f", "f.c", 7);  // another address of the same line
  const uint32_t c = s.frame(main, "f", "f.c", 8);
  s.site(a, kMalloc, 10, 4, 3, 2);
  s.site(b, kCalloc, 100, 1, 1, 1);
  s.site(c, kMalloc, 1, 1, 1, 1);
  const Names names = s.names();
  const StackTree tree(s.profile, names);
  const auto merged = merge_sites(s.profile, tree);
  ASSERT_EQ(merged.size(), 2U);
  EXPECT_EQ(merged[0].live.count, 4U);
  EXPECT_EQ(merged[0].live.bytes, 130U);
  EXPECT_EQ(merged[0].peak.bytes, 120U);
  EXPECT_EQ(merged[0].allocated.count, 5U);
  EXPECT_EQ(entry_names(merged[0].entries), (std::vector<std::string>{"malloc", "calloc"}));
  EXPECT_EQ(merged[1].live.bytes, 1U);
}

TEST(Stacks, InlinedFramesStandInsideTheirCaller) {
  Sample s;
  const uint32_t main = s.frame(kComplete, "main", "m.c", 1);
  const uint32_t node = s.inlined(main, {{"inner", "i.c", 1, 0, true}, {"outer", "o.c", 2, 0, false}});
  const Names names = s.names();
  const StackTree tree(s.profile, names);
  EXPECT_EQ(functions(stack_of(tree, tree.leaf_of(node))), (std::vector<std::string>{"inner", "outer", "main"}));
}

TEST(Stacks, TheNameOfASiteIsTheFirstFrameThatIsNoPlumbing) {
  Sample s;
  const uint32_t main = s.frame(kComplete, "main", "m.c", 1);
  const uint32_t push = s.frame(main, "std::vector<int>::push_back(int)");
  const uint32_t alloc = s.frame(push, "operator new(unsigned long)");
  const uint32_t only = s.frame(kComplete, "malloc");
  const Names names = s.names();
  const StackTree tree(s.profile, names);
  const Stack stack = stack_of(tree, tree.leaf_of(alloc));
  ASSERT_EQ(stack.frames.size(), 3U);
  EXPECT_EQ(stack.first, 2U);
  EXPECT_EQ(tree.site_step(tree.leaf_of(alloc)), tree.leaf_of(main));
  EXPECT_EQ(stack_of(tree, tree.leaf_of(only)).first, 0U);  // nothing but plumbing: the innermost frame
  EXPECT_EQ(tree.site_step(tree.leaf_of(only)), tree.leaf_of(only));
}

TEST(Stacks, AFunctionWithANameIsPreferredWithinTheModule) {
  Sample s;
  s.profile.modules.push_back({2, 0, 0x9000, 0xa000, 0x9000, "", "/lib/other.so"});
  const uint32_t main = s.frame(kComplete, "main", "m.c", 1);
  s.profile.nodes[main].module = 2;
  const uint32_t outer = s.frame(main, "outer");
  const uint32_t middle = s.frame(outer, "");  // no name
  const uint32_t wrapper = s.frame(middle, "xmalloc");
  const uint32_t leaf = s.frame(wrapper, "");
  const uint32_t lonely = s.frame(main, "");
  const Names names = s.names();
  const StackTree tree(s.profile, names);
  EXPECT_EQ(tree.site_step(tree.leaf_of(leaf)), tree.leaf_of(outer));
  EXPECT_EQ(stack_of(tree, tree.leaf_of(leaf)).first, 3U);
  EXPECT_EQ(tree.site_step(tree.leaf_of(lonely)), tree.leaf_of(lonely));  // main is of another module
}

TEST(Stacks, CutStacksSayWhy) {
  Sample s;
  const uint32_t f = s.frame(static_cast<uint32_t>(wire::NodeRoot::kNoCfi), "f");
  s.site(f, kMalloc, 1, 1, 1, 1);
  s.site(static_cast<uint32_t>(wire::NodeRoot::kNone), kMalloc, 1, 1, 1, 1);
  const Names names = s.names();
  const StackTree tree(s.profile, names);
  EXPECT_EQ(stack_of(tree, tree.leaf_of(f)).cut, "[cut at code without unwind information]");
  EXPECT_EQ(stack_of(tree, tree.leaf_of(0)).cut, "[no stack]");
  EXPECT_TRUE(stack_of(tree, tree.leaf_of(0)).frames.empty());
}

TEST(Stacks, ParentsMayBeDefinedAfterTheirChildren) {
  Sample s;
  const uint32_t child = s.frame(kComplete, "child");
  const uint32_t parent = s.frame(kComplete, "parent");
  s.profile.nodes[child].parent = parent;
  const Names names = s.names();
  const StackTree tree(s.profile, names);
  EXPECT_EQ(functions(stack_of(tree, tree.leaf_of(child))), (std::vector<std::string>{"child", "parent"}));
}

TEST(Stacks, BrokenTreesEnd) {
  Sample s;
  const uint32_t a = s.frame(kComplete, "a");
  const uint32_t b = s.frame(a, "b");
  const uint32_t own = s.frame(kComplete, "own");
  const uint32_t far = s.frame(4000000000, "far");
  s.profile.nodes[a].parent = b;      // a cycle
  s.profile.nodes[own].parent = own;  // the shortest one
  const uint32_t lost = s.frame(kComplete, "lost");
  s.profile.nodes[lost].defined = false;
  const Names names = s.names();
  const StackTree tree(s.profile, names);
  EXPECT_LE(stack_of(tree, tree.leaf_of(b)).frames.size(), 2U);
  EXPECT_EQ(stack_of(tree, tree.leaf_of(own)).cut, "[no stack]");
  EXPECT_EQ(functions(stack_of(tree, tree.leaf_of(far))), (std::vector<std::string>{"far"}));
  EXPECT_EQ(functions(stack_of(tree, tree.leaf_of(lost))), (std::vector<std::string>{"[frame lost]"}));
  EXPECT_EQ(tree.leaf_of(4000000000), 0U);
}

TEST(Stacks, OrderDoesNotDependOnTheTrace) {
  const auto ranking = [](bool reversed) {
    Sample s;
    const uint32_t main = s.frame(kComplete, "main", "m.c", 1);
    const std::vector<std::string> order =
        reversed ? std::vector<std::string>{"c", "b", "a"} : std::vector<std::string>{"a", "b", "c"};
    for (const std::string& name : order) s.site(s.frame(main, name, name + ".c", 1), kMalloc, 8, 5, 5, 5);
    s.site(s.frame(main, "big", "d.c", 1), kMalloc, 8, 50, 50, 1);
    s.site(s.frame(main, "gone", "e.c", 1), kMalloc, 8, 50, 0, 1);
    const Names names = s.names();
    const StackTree tree(s.profile, names);
    std::string said;
    for (const MergedSite& site : ranked(merge_sites(s.profile, tree), tree, Metric::kLive)) {
      said += functions(stack_of(tree, site.step))[0] + " ";
    }
    return said;
  };
  EXPECT_EQ(ranking(false), "big a b c ");
  EXPECT_EQ(ranking(true), ranking(false));
}

TEST(Stacks, EachMetricRanksByItsOwnValue) {
  Sample s;
  const uint32_t main = s.frame(kComplete, "main", "m.c", 1);
  s.site(s.frame(main, "live"), kMalloc, 10, 20, 20, 0);
  s.site(s.frame(main, "peak"), kMalloc, 10, 20, 0, 20);
  s.site(s.frame(main, "allocated"), kMalloc, 1000, 30, 1, 1).live = {};
  s.site(s.frame(main, "count"), kMalloc, 1, 40, 1, 1);
  s.site(s.frame(main, "temporary"), kMalloc, 1, 10, 1, 1).temporary = {9, 9};
  const Names names = s.names();
  const StackTree tree(s.profile, names);
  const auto merged = merge_sites(s.profile, tree);
  const auto first = [&](Metric metric) { return functions(stack_of(tree, ranked(merged, tree, metric)[0].step))[0]; };
  EXPECT_EQ(first(Metric::kLive), "live");
  EXPECT_EQ(first(Metric::kAllocated), "allocated");
  EXPECT_EQ(first(Metric::kCount), "count");
  EXPECT_EQ(first(Metric::kTemporary), "temporary");
  s.profile.sites[2].peak = {};
  EXPECT_EQ(functions(stack_of(tree, ranked(merge_sites(s.profile, tree), tree, Metric::kPeak)[0].step))[0], "peak");
}

TEST(Stacks, OnePlaceReachedByManyPathsIsOneRowOfASummary) {
  Sample s;
  const uint32_t main = s.frame(kComplete, "main", "m.c", 1);
  const uint32_t a = s.frame(main, "a", "m.c", 2);
  const uint32_t b = s.frame(main, "b", "m.c", 3);
  s.site(s.frame(a, "make", "m.c", 9), kMalloc, 1, 10, 1, 3);
  s.site(s.frame(b, "make", "m.c", 9), kMalloc, 1, 10, 1, 4);
  s.site(s.frame(b, "other", "m.c", 20), kMalloc, 1, 10, 1, 5);
  const Names names = s.names();
  const StackTree tree(s.profile, names);
  const auto sites = ranked(merge_sites(s.profile, tree), tree, Metric::kPeak);
  ASSERT_EQ(sites.size(), 3U);
  const auto places = ranked(merge_places(sites, tree), tree, Metric::kPeak);
  ASSERT_EQ(places.size(), 2U);
  EXPECT_EQ(functions(stack_of(tree, places[0].step))[0], "make");
  EXPECT_EQ(functions(stack_of(tree, places[0].step))[1], "b");  // the larger part lends its stack
  uint64_t peak = 0;
  for (const auto& site : s.profile.sites) peak += site.peak.bytes;
  EXPECT_EQ(places[0].peak.bytes + places[1].peak.bytes, peak);
}

TEST(Stacks, UnknownEntryPointsAreKept) {
  EXPECT_EQ(entry_names(1), (std::vector<std::string>{"?"}));
  Sample s;
  s.site(s.frame(kComplete, "f"), 200, 1, 1, 1, 1);
  const Names names = s.names();
  const StackTree tree(s.profile, names);
  EXPECT_EQ(merge_sites(s.profile, tree)[0].entries, 1U);
}

TEST(Names, WithoutSymbolsFramesAreModuleAndOffset) {
  Sample s;
  const uint32_t f = s.frame(kComplete, "f", "f.c", 1);
  s.profile.nodes.push_back({f, 0, 0x7fffdead, true});  // code of no module
  const Names names = resolve_names(s.profile, {});
  ASSERT_EQ(names.frames.size(), 2U);
  EXPECT_FALSE(names.symbols);
  EXPECT_EQ(names.unresolved, 2U);
  EXPECT_EQ(names.frames[0].function, "app+0x1080");
  EXPECT_EQ(names.frames[1].function, "0x7fffdead");
}

TEST(Names, EachAddressIsResolvedOnce) {
  Sample s;
  const uint32_t f = s.frame(kComplete, "f");
  s.profile.nodes.push_back(s.profile.nodes[f]);
  s.profile.nodes.back().parent = f;  // recursion: the same address below itself
  size_t calls = 0, asked = 0;
  const Names names = resolve_names(s.profile, [&](const std::vector<Symbolizer::Address>& addresses) {
    ++calls;
    asked += addresses.size();
    return std::vector<std::vector<SourceFrame>>(addresses.size(), {{"f", "f.c", 3, 1, false}});
  });
  EXPECT_EQ(calls, 1U);
  EXPECT_EQ(asked, 1U);
  EXPECT_EQ(names.addresses, 1U);
  EXPECT_EQ(names.unresolved, 0U);
  const StackTree tree(s.profile, names);
  EXPECT_EQ(tree.frames_from(tree.leaf_of(f + 1)).size(), 2U);
}

}  // namespace
}  // namespace traceaf::reader::views
