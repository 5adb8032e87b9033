// traceaf-report as a user runs it: verbs, files, exit status, what goes to which stream.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <utime.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "run_program.h"

namespace traceaf {
namespace {

using nlohmann::json;
using test::Folder;
using test::How;
using test::Ran;

const std::string kReport = REPORT_PROGRAM;

// One generation of one thread: two blocks are born, one dies, a third is the last.
constexpr const char* kTrace = R"(Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=1000
Sync
Frequency freq=1000000000
ClockSnapshot dt=10 mono=1010 sec=1700000000 nsec=0
ExperimentalBatch exp=1 gen=1 m=18446744073709551615 time=1000
	kind=1
	Info min_addr=65536 page_size=4096 min_align=8 fixed_stack=4096
EventBatch gen=1 m=1 time=2000
GoCreateSyscall dt=0 new_g=1
HeapObjectAlloc dt=10 object_id=2 type_id=1
HeapObjectAlloc dt=10 object_id=4 type_id=2
HeapObjectFree dt=10 object_id=2
HeapObjectAlloc dt=10 object_id=8 type_id=1
ExperimentalBatch exp=1 gen=1 m=18446744073709551615 time=1000
	kind=0
	Type id=1 address=4352 size=24 pointer_bytes=0 name="app+0x100"
	Type id=2 address=4352 size=1000 pointer_bytes=0 name="app+0x100"
ExperimentalBatch exp=1 gen=1 m=18446744073709551615 time=2000
	kind=2
	Process pid=77 ppid=1 start_time=1000 start_wall_ns=1700000000000000000 clock=0 live=1 image=0 parent_pid=0 exe="/bin/app" cmdline="app\x00-v\x00" options="1" version="0.1.0" host="box"
	Thread m=1 tid=77 birth_time=1000 flags=1 stack_lo=0 stack_size=0 name="app"
	Module id=1 flags=1 start=4096 end=8192 bias=0 build_id="" path="/nowhere/app"
	Node id=8 parent=1 module=1 offset=256
	Site type_id=1 node=8 entry=1 align_log2=0 size=24
	Site type_id=2 node=8 entry=2 align_log2=0 size=1000
	End time=2040 reason=1 status=0
EndOfGeneration
)";

class Report : public ::testing::Test {
 protected:
  // Assembles kTrace (with `from` replaced by `to`) into a trace file in the folder.
  std::string trace(const std::string& name, const std::string& from = {}, const std::string& to = {}) {
    std::string text = kTrace;
    if (!from.empty()) text.replace(text.find(from), from.size(), to);
    const std::string source = folder_.write(name + ".txt", text);
    const Ran ran = test::run({kReport, "raw", "--assemble", source, "-o", folder_.path(name)});
    EXPECT_EQ(ran.code(), 0) << ran.err;
    return folder_.path(name);
  }
  Ran report(std::vector<std::string> words, const std::vector<std::pair<std::string, std::string>>& environment = {}) {
    words.insert(words.begin(), kReport);
    How how;
    how.folder = folder_.path();
    how.environment = environment;
    return test::run(words, how);
  }
  Folder folder_;
};

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool has(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

TEST_F(Report, SummaryIsTheVerbOfABareFile) {
  const std::string file = trace("a.traf");
  const Ran bare = report({file});
  EXPECT_EQ(bare.code(), 0) << bare.err;
  EXPECT_EQ(bare.err, "");
  EXPECT_EQ(bare.out, report({"summary", file}).out);
  EXPECT_TRUE(has(bare.out, "app -v\n")) << bare.out;
  EXPECT_TRUE(has(bare.out, "Peak: 1.0 KiB in 2 blocks")) << bare.out;
}

TEST_F(Report, JsonCountsWhatTheTraceSays) {
  const Ran ran = report({trace("a.traf"), "--format=json"});
  ASSERT_EQ(ran.code(), 0) << ran.err;
  const json j = json::parse(ran.out);
  EXPECT_EQ(j["command"], "app -v");
  EXPECT_EQ(j["pid"], 77);
  EXPECT_EQ(j["complete"], true);
  EXPECT_EQ(j["allocations"], 3);
  EXPECT_EQ(j["frees"], 1);
  EXPECT_EQ(j["allocated_bytes"], 1048);
  EXPECT_EQ(j["peak_bytes"], 1024);
  EXPECT_EQ(j["live_blocks"], 2);
  EXPECT_EQ(j["threads"], 1);
  const json threads = json::parse(report({"threads", "a.traf", "--format", "json"}).out)["threads"];
  EXPECT_EQ(threads[0]["m"], 1);
  EXPECT_EQ(threads[0]["allocations"], 3);
}

TEST_F(Report, EveryVerbReadsATrace) {
  const std::string file = trace("a.traf");
  for (const char* verb : {"summary", "top", "tree", "leaks", "threads", "spans", "info"}) {
    for (const char* format : {"--format=text", "--format=json"}) {
      const Ran ran = report({verb, file, format, "--no-symbols", "--full"});
      EXPECT_EQ(ran.code(), 0) << verb << ": " << ran.err;
      EXPECT_FALSE(ran.out.empty()) << verb;
      EXPECT_EQ(json::accept(ran.out), std::string(format) == "--format=json") << verb;
    }
  }
}

TEST_F(Report, WithoutFileTheNewestTraceIsReadAndNamed) {
  EXPECT_EQ(report({}).code(), 1);
  trace("old.traf", "pid=77", "pid=11");
  trace("new.traf", "pid=77", "pid=22");
  const utimbuf long_ago{1000, 1000};
  ASSERT_EQ(utime(folder_.path("old.traf").c_str(), &long_ago), 0);
  const Ran ran = report({"--format=json"});
  EXPECT_EQ(json::parse(ran.out)["pid"], 22);
  EXPECT_EQ(ran.err, "traceaf-report: reading the newest trace here, new.traf\n");
}

TEST_F(Report, WrongUsageIs2) {
  const std::string file = trace("a.traf");
  EXPECT_EQ(report({"summary", file, "--bogus"}).code(), 2);
  EXPECT_EQ(report({"top", file, "--metric=weight"}).code(), 2);
  EXPECT_EQ(report({"top", file, "--limit=-1"}).code(), 2);
  EXPECT_EQ(report({"top", file, "--format=xml"}).code(), 2);
  EXPECT_EQ(report({"tree", file, "--threshold=101"}).code(), 2);
  EXPECT_EQ(report({"raw", "--assemble"}).code(), 2);
  const Ran verb = report({"tpo", file});
  EXPECT_EQ(verb.code(), 2);
  EXPECT_TRUE(has(verb.err, "there is no verb 'tpo'; verbs: summary, top")) << verb.err;
}

TEST_F(Report, WhatIsNoTraceIs1WithTheFileNamed) {
  folder_.write("empty", "");
  folder_.write("picture.png", "\x89PNG\r\n\x1a\n0123456789");
  ASSERT_EQ(mkfifo(folder_.path("fifo").c_str(), 0600), 0);
  for (const char* name : {"missing", "empty", "picture.png", "fifo", "."}) {
    const Ran ran = report({name});
    EXPECT_EQ(ran.code(), 1) << name;
    EXPECT_EQ(ran.out, "") << name;
    EXPECT_TRUE(has(ran.err, std::string("traceaf-report: ") + name + ":")) << ran.err;
  }
}

TEST_F(Report, ATraceCutAnywhereIs1AndNeverACrash) {
  const std::string whole = bytes_of(trace("a.traf"));
  size_t told = 0;
  for (size_t size = 0; size < whole.size(); size += 7) {
    folder_.write("cut.traf", whole.substr(0, size));
    const Ran ran = report({"cut.traf", "--no-symbols"});
    EXPECT_EQ(ran.code(), 1) << size << ran.err;
    EXPECT_TRUE(has(ran.err, "cut.traf")) << ran.err;
    told += has(ran.out, "the end of the trace is missing") || has(ran.out, "a part of the trace is missing") ? 1U : 0U;
  }
  EXPECT_GT(told, 5U);  // what was whole before the cut is still shown
}

TEST_F(Report, AnEndThatIsMissingIsSaid) {
  const std::string file = trace("a.traf", "\tEnd time=2040 reason=1 status=0\n", "");
  const Ran ran = report({file});
  EXPECT_EQ(ran.code(), 1);  // neither an end nor a tail: the last part is gone
  EXPECT_TRUE(has(ran.out, "1.0 KiB in 2 blocks")) << ran.out;
  EXPECT_TRUE(has(ran.err, "the recorder's last word is missing")) << ran.err;
}

TEST_F(Report, ValidateJudgesByItsExitStatus) {
  const Ran good = report({"validate", trace("a.traf")});
  EXPECT_EQ(good.code(), 0) << good.out << good.err;
  const std::string bad = trace("bad.traf", "HeapObjectFree dt=10 object_id=2", "HeapObjectFree dt=10 object_id=77");
  const Ran ran = report({"validate", bad, "--format=json"});
  EXPECT_EQ(ran.code(), 1);
  const json j = json::parse(ran.out);
  EXPECT_EQ(j["ok"], false);
  EXPECT_GE(j["findings"].size(), 1U);
}

TEST_F(Report, RawIsLossless) {
  const std::string file = trace("a.traf");
  const Ran text = report({"raw", file});
  EXPECT_EQ(text.code(), 0) << text.err;
  folder_.write("again.txt", text.out);
  EXPECT_EQ(report({"raw", "--assemble", "again.txt", "-o", "again.traf"}).code(), 0);
  EXPECT_EQ(bytes_of(folder_.path("again.traf")), bytes_of(file));
  EXPECT_EQ(report({"raw", "--assemble", "again.txt", "-o", "again.traf"}).code(), 1);  // never over an existing file
  folder_.write("wrong.txt", "Trace Go1.26\nNoSuchEvent dt=1\n");
  const Ran wrong = report({"raw", "--assemble", "wrong.txt"});
  EXPECT_EQ(wrong.code(), 1);
  EXPECT_TRUE(has(wrong.err, "wrong.txt")) << wrong.err;
}

TEST_F(Report, ColourFollowsTheOptionAndTheEnvironment) {
  const std::string file = trace("a.traf");
  EXPECT_FALSE(has(report({file}).out, "\x1b["));  // no terminal
  EXPECT_TRUE(has(report({file, "--color=always"}, {{"NO_COLOR", "1"}}).out, "\x1b["));
  EXPECT_FALSE(has(report({file, "--color=never"}).out, "\x1b["));
  EXPECT_FALSE(has(report({file, "--color=always", "--format=json"}).out, "\x1b["));
}

TEST_F(Report, AFullOutputIsAnError) {
  const std::string file = trace("a.traf");
  const Ran ran = test::run({"sh", "-c", kReport + " " + file + " >/dev/full"});
  EXPECT_EQ(ran.code(), 1);
  EXPECT_TRUE(has(ran.err, "cannot write the output")) << ran.err;
}

TEST_F(Report, AClosedPipeIsQuiet) {
  const std::string file = trace("a.traf");
  const Ran ran = test::run({"sh", "-c", kReport + " raw " + file + " | true"});
  EXPECT_EQ(ran.err, "");
}

}  // namespace
}  // namespace traceaf
