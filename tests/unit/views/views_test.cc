// What each view says of the same run, word by word.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reader/views/render.h"
#include "reader/views/views.h"
#include "reader/views/wording.h"
#include "sample_profile.h"

namespace traceaf::reader::views {
namespace {

using nlohmann::json;
using test::as_json;
using test::as_text;
using test::Sample;
using test::whole_run;

ViewOptions options() {
  ViewOptions options;
  options.file = "x.traf";
  return options;
}

ViewOptions for_json() {
  ViewOptions o = options();
  o.full = true;
  return o;
}

TEST(Golden, Summary) {
  const Sample s = whole_run();
  const Names names = s.names();
  EXPECT_EQ(as_text(summary_view(s.profile, names, options())), &R"(
app -x 'a file'
pid 1234 on box, 2023-11-14 22:13:20 UTC, x.traf

Ends         the process exited
Duration     1.53 s in 2 generations
Events       33,579: 17,289 allocations, 16,288 frees (7 of each by realloc)
Allocated    12.5 MiB, 756 B a block on average
Short-lived  52.1% of all blocks were freed within 1.05 ms; 8.7% before their thread allocated again
Threads      2
Spans        2 of 15.0 MiB at the end, at most 3 at once
Symbols      1 of 2 modules with debug info, 0 of 5 frames without a name
             without line numbers: libbar.so.1 (symbol table only)
Losses       none

Peak: 12.4 MiB in 16,288 blocks at 700 ms
   12.0 MiB  96.9%  12,288  malloc        parse_line  parse.cc:120
  390.6 KiB   3.1%   4,000  operator new  add  parse.cc:99

Not freed at the end: 97.7 KiB in 1,001 blocks
  97.7 KiB  100.0%  1,000  operator new  add  parse.cc:99
                                           parse_line  parse.cc:120
                                           load_file  main.c:44
                                           ... 1 more
       1 B   <0.1%      1  calloc        load_file  main.c:44
                                           main  main.c:80

Next  traceaf-report tree --metric=peak x.traf
)"[1]);
}

TEST(Golden, Top) {
  const Sample s = whole_run();
  const Names names = s.names();
  EXPECT_EQ(as_text(top_view(s.profile, names, options())), &R"(
12.4 MiB in 16,288 blocks: live at the peak, by call stack
    bytes  share  blocks  by            site and its callers
 12.0 MiB  96.9%  12,288  malloc        parse_line  parse.cc:120
                                          load_file  main.c:44
                                          main  main.c:80
390.6 KiB   3.1%   4,000  operator new  add  parse.cc:99
                                          parse_line  parse.cc:120
                                          load_file  main.c:44
                                          main  main.c:80
)"[1]);
}

TEST(Golden, Leaks) {
  const Sample s = whole_run();
  const Names names = s.names();
  EXPECT_EQ(as_text(leaks_view(s.profile, names, options())), &R"(
Not freed at the end: 97.7 KiB in 1,001 blocks
   bytes   share  blocks  by              first  last birth  site and its callers
97.7 KiB  100.0%   1,000  operator new  2.00 ms      900 ms  add  parse.cc:99
                                                               parse_line  parse.cc:120
                                                               load_file  main.c:44
                                                               main  main.c:80
     1 B   <0.1%       1  calloc           0 ns        0 ns  load_file  main.c:44
                                                               main  main.c:80

A block that the program still used when it ended counts too.
)"[1]);
}

TEST(Golden, Tree) {
  const Sample s = whole_run();
  const Names names = s.names();
  ViewOptions o = options();
  EXPECT_EQ(as_text(tree_view(s.profile, names, o)), &R"(
12.4 MiB in 16,288 blocks: live at the peak, from the threads' entries down
100.0%   12.4 MiB  all
100.0%   12.4 MiB    - main  main.c:80
100.0%   12.4 MiB      load_file  main.c:44
100.0%   12.4 MiB      parse_line  parse.cc:120
  3.1%  390.6 KiB      - add  parse.cc:99
)"[1]);
  o.invert = true;
  EXPECT_EQ(as_text(tree_view(s.profile, names, o)), &R"(
12.4 MiB in 16,288 blocks: live at the peak, from the sites to their callers
100.0%   12.4 MiB  all
 96.9%   12.0 MiB    - parse_line  parse.cc:120
 96.9%   12.0 MiB      load_file  main.c:44
 96.9%   12.0 MiB      main  main.c:80
  3.1%  390.6 KiB    - add  parse.cc:99
  3.1%  390.6 KiB      parse_line  parse.cc:120
  3.1%  390.6 KiB      load_file  main.c:44
  3.1%  390.6 KiB      main  main.c:80
)"[1]);
}

TEST(Golden, Threads) {
  const Sample s = whole_run();
  EXPECT_EQ(as_text(threads_view(s.profile, options())), &R"(
2 threads allocated 12.5 MiB in 17,289 blocks
m   tid  name        allocated  share  blocks   frees     freed  temporary  events  born at     stack
1  1234  app          12.4 MiB  99.4%  17,000  16,000  12.2 MiB      1,500  33,000     0 ns   8.0 MiB
2  1240  worker       81.0 KiB   0.6%     289     288  80.1 KiB          0     579  5.00 ms  64.0 KiB
3  1241  [recorder]        0 B   0.0%       0       0       0 B          0       0     0 ns         -
)"[1]);
}

TEST(Golden, Spans) {
  const Sample s = whole_run();
  EXPECT_EQ(as_text(spans_view(s.profile, options())), &R"(
2 spans of 15.0 MiB at the end, at most 3 at once
source               spans     bytes  live bytes  used  live blocks
main heap (brk)          1  14.0 MiB    87.9 KiB  0.6%          900
mmap by the program      1   1.0 MiB     9.8 KiB  1.0%          101

Largest first
       address     bytes  source               live bytes  used  live blocks  inferred
     0x1000000  14.0 MiB  main heap (brk)        87.9 KiB  0.6%          900  no
0x7f1000000000   1.0 MiB  mmap by the program     9.8 KiB  1.0%          101  yes
)"[1]);
}

// The lines of `text` that contain `what`.
size_t lines_with(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(Summary, JsonHasThePromisedKeys) {
  const Sample s = whole_run();
  const Names names = s.names();
  const json j = json::parse(as_json(summary_view(s.profile, names, for_json())));
  EXPECT_EQ(j["command"], "app -x 'a file'");
  EXPECT_EQ(j["argv"], json({"app", "-x", "a file"}));
  EXPECT_EQ(j["pid"], 1234);
  EXPECT_EQ(j["complete"], true);
  EXPECT_EQ(j["duration_ns"], 1530000000);
  EXPECT_EQ(j["events"], 33579);
  EXPECT_EQ(j["allocations"], 17289);
  EXPECT_EQ(j["frees"], 16288);
  EXPECT_EQ(j["allocated_bytes"], 12288 * 1024 + 5000 * 100 + 1);
  EXPECT_EQ(j["peak_bytes"], 12288 * 1024 + 4000 * 100);
  EXPECT_EQ(j["peak_time_ns"], 700000000);
  EXPECT_EQ(j["live_blocks"], 1001);
  EXPECT_EQ(j["live_bytes"], 100001);
  EXPECT_EQ(j["temporary"], 1500);
  EXPECT_EQ(j["threads"], 2);  // not the recorder's own
  EXPECT_EQ(j["spans"], 2);
  EXPECT_EQ(j["sites"], 3);
  EXPECT_EQ(j["lost_events"], 0);
  EXPECT_EQ(j["unknown_frees"], 0);
  EXPECT_EQ(j["truncated_stacks"], 0);
  EXPECT_EQ(j["unresolved_frames"], 0);
  EXPECT_EQ(j["generations"], 2);
  EXPECT_EQ(j["short_lived"], 9000);
  EXPECT_EQ(j["modules_without_lines"], json({"libbar.so.1 (symbol table only)"}));
  EXPECT_EQ(j["events_by_type"]["HeapObjectAlloc"], 17289);
  EXPECT_EQ(j["counters"]["events"], 33579);
  EXPECT_EQ(j["peak_sites"].size(), 2U);
  const json& leak = j["leak_sites"][0];
  EXPECT_EQ(leak["function"], "add(int)");
  EXPECT_EQ(leak["file"], "/src/app/parse.cc");
  EXPECT_EQ(leak["line"], 99);
  ASSERT_EQ(leak["stack"].size(), 6U);  // the plumbing is there
  EXPECT_EQ(leak["stack"][0]["function"], "operator new(unsigned long)");
  EXPECT_EQ(leak["stack"][1]["inlined"], true);
}

TEST(Summary, EveryLossIsNamedWithItsMeaning) {
  Sample s = whole_run();
  for (const auto& counter : wire::kCounters) s.profile.counters[counter.number] = 11 + counter.number;
  s.profile.unknown_frees = 3;
  s.profile.frees_before = 4;
  s.profile.double_births = 5;
  s.profile.unknown_types = 6;
  s.profile.ending.lost_bytes = 77;
  s.profile.ending.damaged = true;
  const Names names = s.names();
  const std::string text = as_text(summary_view(s.profile, names, options()));
  EXPECT_NE(text.find("lost_events = 12: events dropped because no batch was free in time"), std::string::npos) << text;
  for (const auto& counter : wire::kCounters) {
    const std::string name = std::string(counter.name) + " = " + std::to_string(11 + counter.number);
    EXPECT_EQ(lines_with(text, name), counts_loss(counter.number) ? 1U : 0U) << name << "\n" << text;
  }
  for (const char* name :
       {"unknown_frees = 3", "frees_before = 4", "double_births = 5", "unknown_types = 6", "lost_bytes = 77"}) {
    EXPECT_EQ(lines_with(text, name), 1U) << name << "\n" << text;
  }
  EXPECT_EQ(text.find("wait_ns"), std::string::npos);  // work, not loss
  EXPECT_NE(text.find("traceaf-report validate x.traf"), std::string::npos);
}

TEST(Summary, FitsOneScreenAtItsWorst) {
  Sample s = whole_run();
  for (const auto& counter : wire::kCounters) s.profile.counters[counter.number] = 11;
  s.profile.unknown_frees = s.profile.frees_before = s.profile.double_births = s.profile.unknown_types = 1;
  s.profile.inherited = {5, 500};
  s.profile.ending = {};
  s.profile.ending.note = "offset 17: cut";
  s.profile.ending.lost_bytes = 1;
  uint32_t at = static_cast<uint32_t>(wire::NodeRoot::kComplete);
  for (int i = 0; i < 300; ++i) {
    at = s.frame(at, "deep" + std::to_string(i), "d.c", static_cast<uint32_t>(i + 1));
    s.site(at, 1, 1000, 9, 9, 9);
  }
  for (uint32_t i = 0; i < 9; ++i) s.coverage.push_back({1, SymbolState::kMissing, "", "", 1, 1});
  const Names names = s.names();
  const std::string worst = as_text(summary_view(s.profile, names, options()));
  EXPECT_LE(lines_with(worst, "\n"), 45U) << worst;
  EXPECT_NE(worst.find("Next"), std::string::npos);
  s.profile.counters = {};
  s.profile.ending = whole_run().profile.ending;
  const std::string good = as_text(summary_view(s.profile, names, options()));
  EXPECT_LE(lines_with(good, "\n"), 45U) << good;
  EXPECT_GE(lines_with(good, "\n"), 30U) << good;
}

TEST(Summary, AnUnfinishedTraceClaimsNoLeaks) {
  Sample s = whole_run();
  s.profile.ending = {};
  s.profile.ending.from_tail = true;
  const Names names = s.names();
  const std::string text = as_text(summary_view(s.profile, names, options()));
  EXPECT_NE(text.find("unfinished"), std::string::npos);
  EXPECT_NE(text.find("Live where the trace stops: 97.7 KiB"), std::string::npos);
  EXPECT_EQ(text.find("Not freed"), std::string::npos);
  const json j = json::parse(as_json(summary_view(s.profile, names, for_json())));
  EXPECT_EQ(j["complete"], false);
  EXPECT_EQ(j["end"], "none");
}

TEST(Summary, NextCommandFollowsFromTheRun) {
  Sample s = whole_run();
  const Names names = s.names();
  const auto next = [&] { return json::parse(as_json(summary_view(s.profile, names, for_json())))["next"]; };
  EXPECT_EQ(next(), "traceaf-report tree --metric=peak x.traf");
  s.profile.temporary.count = s.profile.allocated.count;
  EXPECT_EQ(next(), "traceaf-report top --metric=temporary x.traf");
  s.profile.live.bytes = s.profile.peak.bytes;
  EXPECT_EQ(next(), "traceaf-report leaks x.traf");
}

TEST(Summary, OfNothingIsNoDivisionByZero) {
  const Profile empty;
  const Names names = resolve_names(empty, {});
  const std::string text = as_text(summary_view(empty, names, options()));
  EXPECT_NE(text.find("Events       0: 0 allocations, 0 frees"), std::string::npos) << text;
  EXPECT_TRUE(json::accept(as_json(summary_view(empty, names, for_json()))));
  EXPECT_NE(as_text(tree_view(empty, names, options())).find("nothing"), std::string::npos);
}

TEST(Render, NothingFromTheTraceReachesTheTerminalRaw) {
  Sample s = whole_run();
  const std::string evil = "e\x1b]0;x\x07\n\xff";
  s.profile.process.command = {evil};
  s.profile.process.host = s.profile.process.options = s.profile.process.exe = s.profile.process.version = evil;
  s.profile.ending.note = evil;
  s.profile.modules[1].path = "/tmp/" + evil;
  s.profile.modules[1].build_id = evil;
  s.profile.threads[0].name = evil;
  for (auto& [offset, frames] : s.named) {
    for (auto& frame : frames) frame.function += evil, frame.file += evil;
  }
  s.coverage[0].state = SymbolState::kMissing;
  s.coverage[0].note = evil;
  const Names names = s.names();
  ViewOptions o = options();
  o.file = evil;
  for (const bool full : {false, true}) {
    o.full = full;
    std::vector<Document> documents;
    documents.push_back(summary_view(s.profile, names, o));
    documents.push_back(top_view(s.profile, names, o));
    documents.push_back(tree_view(s.profile, names, o));
    documents.push_back(leaks_view(s.profile, names, o));
    documents.push_back(threads_view(s.profile, o));
    documents.push_back(spans_view(s.profile, o));
    documents.push_back(info_view(s.profile, names, o));
    for (const Document& document : documents) {
      std::string text;
      render_text(document, {false, 60, full}, [&](std::string_view piece) { text += piece; });
      EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
      EXPECT_EQ(text.find('\x07'), std::string::npos);
      EXPECT_EQ(text.find('\xff'), std::string::npos);
      EXPECT_TRUE(json::accept(as_json(document)));
    }
    EXPECT_NE(as_text(documents[0]).find("e\\x1b]0;x\\x07\\x0a\\xff"), std::string::npos);
    EXPECT_EQ(json::parse(as_json(documents[0]))["argv"][0], "e\x1b]0;x\x07\n\\xff");
  }
}

TEST(Render, ColourOnlyWhenAsked) {
  const Sample s = whole_run();
  const Names names = s.names();
  const Document document = summary_view(s.profile, names, options());
  std::string plain, coloured;
  render_text(document, {false, 0, false}, [&](std::string_view piece) { plain += piece; });
  render_text(document, {true, 0, false}, [&](std::string_view piece) { coloured += piece; });
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  EXPECT_NE(coloured.find("\x1b[1m"), std::string::npos);
  std::string stripped;
  for (size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\x1b') {
      i = coloured.find('m', i);
    } else {
      stripped += coloured[i];
    }
  }
  EXPECT_EQ(stripped, plain);
}

TEST(Render, LongNamesAreFittedToTheTerminal) {
  Sample s;
  const uint32_t f = s.frame(static_cast<uint32_t>(wire::NodeRoot::kComplete), std::string(300, 'n'), "/a/file.c", 12);
  s.site(f, 1, 8, 1, 1, 1);
  s.total();
  const Names names = s.names();
  std::string text;
  render_text(top_view(s.profile, names, options()), {false, 80, false},
              [&](std::string_view piece) { text += piece; });
  size_t longest = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    longest = std::max(longest, end - at);
    at = end + 1;
  }
  EXPECT_LE(longest, 80U) << text;
  EXPECT_NE(text.find("...  file.c:12"), std::string::npos) << text;  // the place is kept whole
}

TEST(Top, FullShowsPlumbingWholeNamesAndPaths) {
  const Sample s = whole_run();
  const Names names = s.names();
  ViewOptions o = options();
  o.full = true;
  std::string text;
  render_text(top_view(s.profile, names, o), {false, 0, true}, [&](std::string_view piece) { text += piece; });
  EXPECT_NE(text.find("operator new(unsigned long)"), std::string::npos) << text;
  EXPECT_NE(text.find("std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int&&)  stl.h:7 (inlined)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("parse_line(char const*)  /src/app/parse.cc:120"), std::string::npos) << text;
}

TEST(Top, LimitSaysWhatIsLeftOut) {
  const Sample s = whole_run();
  const Names names = s.names();
  ViewOptions o = options();
  o.metric = Metric::kAllocated;
  o.limit = 1;
  const std::string text = as_text(top_view(s.profile, names, o));
  EXPECT_NE(text.find("... 2 more (--limit 0 shows all)"), std::string::npos) << text;
  EXPECT_EQ(json::parse(as_json(top_view(s.profile, names, o)))["sites"].size(), 1U);
}

// Sums of a whole tree in JSON: each node's total is its own and its children's.
void expect_conserved(const json& nodes, uint64_t whole) {
  std::vector<uint64_t> below(nodes.size(), 0);
  for (size_t i = nodes.size(); i-- > 0;) {
    const auto& node = nodes[i];
    const uint64_t left_out = node.value("left_out_bytes", uint64_t{0});
    EXPECT_EQ(node["total_bytes"].get<uint64_t>(), node["self_bytes"].get<uint64_t>() + below[i] + left_out) << node;
    if (node["parent"].get<int64_t>() >= 0) {
      below[node["parent"].get<size_t>()] += node["total_bytes"].get<uint64_t>();
    }
  }
  EXPECT_EQ(nodes[0]["total_bytes"].get<uint64_t>(), whole);
}

TEST(Tree, TotalsAreSumsInBothDirections) {
  Sample s;
  std::vector<uint32_t> nodes = {static_cast<uint32_t>(wire::NodeRoot::kComplete),
                                 static_cast<uint32_t>(wire::NodeRoot::kDepthCap)};
  uint64_t random = 12345;
  const auto next = [&](uint64_t below) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    return (random >> 33U) % below;
  };
  for (int i = 0; i < 400; ++i) {
    nodes.push_back(
        s.frame(nodes[next(nodes.size())], "f" + std::to_string(next(20)), "f.c", static_cast<uint32_t>(next(3))));
    const uint64_t n = next(50);
    s.site(nodes.back(), 1, next(1000), n, n, n);
  }
  s.total();
  const Names names = s.names();
  for (const bool invert : {false, true}) {
    for (const double threshold : {0.0, 1.0, 30.0}) {
      ViewOptions o = for_json();
      o.metric = Metric::kLive;
      o.invert = invert;
      o.threshold = threshold;
      const json j = json::parse(as_json(tree_view(s.profile, names, o)));
      expect_conserved(j["nodes"], s.profile.live.bytes);
    }
  }
}

TEST(Tree, SmallNodesAreCountedNotShown) {
  Sample s;
  const uint32_t main = s.frame(static_cast<uint32_t>(wire::NodeRoot::kComplete), "main", "m.c", 1);
  s.site(s.frame(main, "big", "b.c", 1), 1, 1000, 1000, 1000, 1000);
  for (int i = 0; i < 5; ++i) s.site(s.frame(main, "small" + std::to_string(i)), 1, 1, 10, 10, 10);
  s.total();
  const Names names = s.names();
  EXPECT_EQ(as_text(tree_view(s.profile, names, options())), &R"(
976.6 KiB in 1,050 blocks: live at the peak, from the threads' entries down
100.0%  976.6 KiB  all
100.0%  976.6 KiB    - main  m.c:1
100.0%  976.6 KiB      - big  b.c:1
 <0.1%       50 B      - [5 more below 1%]
)"[1]);
  ViewOptions all = options();
  all.threshold = 0;
  EXPECT_EQ(lines_with(as_text(tree_view(s.profile, names, all)), "small"), 5U);
}

TEST(Tree, CutStacksHaveABranchOfTheirOwn) {
  Sample s;
  s.site(s.frame(static_cast<uint32_t>(wire::NodeRoot::kNoCfi), "f", "f.c", 1), 1, 10, 1, 1, 1);
  s.site(s.frame(static_cast<uint32_t>(wire::NodeRoot::kComplete), "main", "m.c", 1), 1, 10, 3, 3, 3);
  s.total();
  const Names names = s.names();
  EXPECT_EQ(as_text(tree_view(s.profile, names, options())), &R"(
40 B in 4 blocks: live at the peak, from the threads' entries down
100.0%   40 B  all
 75.0%   30 B    - main  m.c:1
 25.0%   10 B    - [cut at code without unwind information]
 25.0%   10 B      f  f.c:1
)"[1]);
}

TEST(Tree, VeryDeepRecursionIsNoProblem) {
  Sample s;
  uint32_t at = static_cast<uint32_t>(wire::NodeRoot::kComplete);
  for (int i = 0; i < 20000; ++i) at = s.frame(at, "f", "f.c", 1);
  s.site(at, 1, 10, 1, 1, 1);
  s.total();
  const Names names = s.names();
  for (const bool invert : {false, true}) {
    ViewOptions o = options();
    o.invert = invert;
    EXPECT_EQ(lines_with(as_text(tree_view(s.profile, names, o)), "f.c:1"), 20000U);
  }
}

TEST(Threads, JsonHasTheCountsOfEachThread) {
  const Sample s = whole_run();
  const json j = json::parse(as_json(threads_view(s.profile, options())));
  ASSERT_EQ(j["threads"].size(), 3U);
  const json& worker = j["threads"][1];
  EXPECT_EQ(worker["m"], 2);
  EXPECT_EQ(worker["tid"], 1240);
  EXPECT_EQ(worker["name"], "worker");
  EXPECT_EQ(worker["allocations"], 289);
  EXPECT_EQ(worker["frees"], 288);
  EXPECT_EQ(worker["events"], 579);
  EXPECT_EQ(worker["bytes"], 82913);
  EXPECT_EQ(worker["ended"], true);
}

TEST(Threads, RankedByTheMetric) {
  Sample s = whole_run();
  s.profile.threads[1].temporary.count = 99999;
  ViewOptions o = options();
  const auto first = [&] { return json::parse(as_json(threads_view(s.profile, o)))["threads"][0]["m"]; };
  EXPECT_EQ(first(), 1);
  o.metric = Metric::kTemporary;
  EXPECT_EQ(first(), 2);
}

TEST(Info, NamesModulesAndTheirSymbols) {
  const Sample s = whole_run();
  const Names names = s.names();
  const std::string text = as_text(info_view(s.profile, names, options()));
  EXPECT_NE(text.find("/usr/lib/libbar.so.1  symbol table only          2        1"), std::string::npos) << text;
  EXPECT_NE(text.find("2  1.00 s  1.53 s  13,579        4  29.3 KiB  yes"), std::string::npos) << text;
  const json j = json::parse(as_json(info_view(s.profile, names, for_json())));
  EXPECT_EQ(j["modules"][0]["build_id"], "abcd");
  EXPECT_EQ(j["modules"][0]["debug_file"], "/usr/lib/debug/app");
  EXPECT_EQ(j["generations"].size(), 2U);
  EXPECT_EQ(j["counters"].size(), std::size(wire::kCounters));
}

}  // namespace
}  // namespace traceaf::reader::views
