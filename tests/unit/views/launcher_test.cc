// traceaf as a user runs it: what the command sees, and what its end looks like from outside.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "run_program.h"

namespace traceaf {
namespace {

using test::Folder;
using test::How;
using test::Ran;

const std::string kTraceaf = TRACEAF_PROGRAM;

// A run with the probe in place of the library.
Ran record(std::vector<std::string> words, How how = {}) {
  words.insert(words.begin(), {kTraceaf, "record"});
  how.environment.insert(how.environment.begin(), {"TRACEAF_LIBRARY", PROBE_LIBRARY});
  return test::run(words, how);
}

bool has(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

TEST(Launcher, PassesTheExitStatusOn) {
  for (const int status : {0, 1, 7, 124, 125, 255}) {
    EXPECT_EQ(record({"--", "sh", "-c", "exit " + std::to_string(status)}).code(), status);
  }
}

TEST(Launcher, DiesByTheCommandsSignal) {
  for (const int signal : {SIGTERM, SIGKILL, SIGSEGV, SIGINT, SIGABRT}) {
    const Ran ran = record({"--", "sh", "-c", "kill -" + std::to_string(signal) + " $$"});
    EXPECT_EQ(ran.signal(), signal) << ran.err;
  }
}

TEST(Launcher, OutputAndInputAreTheCommandsOwn) {
  const Ran ran = record({"--", "sh", "-c", "echo out; echo err >&2"}, {{{"PROBE_QUIET", "1"}}, {}, {}, false});
  EXPECT_EQ(ran.out, "out\n");
  EXPECT_EQ(ran.err.find("err\n"), 0U);
}

TEST(Launcher, SetsPreloadAndOptions) {
  const Ran ran = record({"--depth", "64", "--compress=none", "-o", "x.%p.traf", "--", "true"});
  EXPECT_EQ(ran.code(), 0);
  EXPECT_TRUE(has(ran.err, std::string("probe: 1,compress=none,depth=64,out=x.%p.traf | ") + PROBE_LIBRARY + "\n"))
      << ran.err;
}

TEST(Launcher, KeepsOtherPreloadsAndInheritedOptions) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "a launcher with a sanitizer tolerates no other preload";
#endif
  How how;
  how.environment = {{"LD_PRELOAD", "libm.so.6"}, {"TRACEALLOCFREE", "0,stacks=both"}};
  const Ran ran = record({"--standby", "--option", "follow=0", "--", "true"}, how);
  EXPECT_TRUE(has(ran.err, std::string("probe: 0,stacks=both,standby,follow=0 | ") + PROBE_LIBRARY + ":libm.so.6\n"))
      << ran.err;
}

TEST(Launcher, TheVerbMayBeLeftOut) {
  const Ran ran = test::run({kTraceaf, "sh", "-c", "exit 3"}, {{{"TRACEAF_LIBRARY", PROBE_LIBRARY}}, {}, {}, false});
  EXPECT_EQ(ran.code(), 3);
  EXPECT_TRUE(has(ran.err, "probe: 1 | "));
}

TEST(Launcher, OptionsEndAtTheCommand) {
  const Ran ran = record({"printf", "%s", "--depth"}, {{{"PROBE_QUIET", "1"}}, {}, {}, false});
  EXPECT_EQ(ran.out, "--depth");
}

TEST(Launcher, CommandThatIsNotThere) {
  const Ran ran = record({"--", "no-such-command-at-all"});
  EXPECT_EQ(ran.code(), 127);
  EXPECT_TRUE(has(ran.err, "traceaf: no-such-command-at-all: No such file or directory"));
}

TEST(Launcher, CommandThatCannotBeExecuted) {
  const Folder folder;
  EXPECT_EQ(record({"--", folder.write("data", "x", 0644)}).code(), 126);
  EXPECT_EQ(record({"--", folder.path()}).code(), 126);
}

TEST(Launcher, ScriptWithoutInterpreterLineRuns) {
  const Folder folder;
  EXPECT_EQ(record({"--", folder.write("script", "exit 9\n", 0755)}).code(), 9);
}

TEST(Launcher, OwnFailuresAre125) {
  EXPECT_EQ(record({}).code(), 125);
  EXPECT_EQ(record({"--no-such-option", "--", "true"}).code(), 125);
  EXPECT_EQ(record({"--compress", "gzip", "--", "true"}).code(), 125);
  EXPECT_EQ(record({"--out", "a,b", "--", "true"}).code(), 125);
  EXPECT_EQ(record({"--depth=many", "--", "true"}).code(), 125);
  const Ran option = record({"--option", "color=red", "--", "true"});
  EXPECT_EQ(option.code(), 125);
  EXPECT_TRUE(has(option.err, "generation_size")) << option.err;  // the names that are accepted
}

TEST(Launcher, MissingLibraryIsSaidAndNothingRuns) {
  const Ran ran =
      test::run({kTraceaf, "record", "--", "echo", "ran"}, {{{"TRACEAF_LIBRARY", "/nowhere/lib.so"}}, {}, {}, false});
  EXPECT_EQ(ran.code(), 125);
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(has(ran.err, "TRACEAF_LIBRARY: /nowhere/lib.so: No such file")) << ran.err;
}

TEST(Launcher, FindsTheLibraryRelativeToItself) {
  const Folder folder;
  std::filesystem::create_directories(folder.path("bin"));
  for (const char* place : {"lib/x86_64-linux-gnu", "lib"}) {
    std::filesystem::create_directories(folder.path(place));
    std::filesystem::copy_file(kTraceaf, folder.path("bin/traceaf"), std::filesystem::copy_options::overwrite_existing);
    const std::string library = folder.path(place) + "/libtraceaf.so";
    std::filesystem::copy_file(PROBE_LIBRARY, library);
    const Ran ran = test::run({folder.path("bin/traceaf"), "true"}, {{{"TRACEAF_LIBRARY", ""}}, {}, {}, false});
    EXPECT_EQ(ran.code(), 0);
    EXPECT_TRUE(has(ran.err, "| " + std::filesystem::canonical(library).string())) << ran.err;
  }
}

TEST(Launcher, APathThatPreloadCannotCarryIsRefused) {
  const Folder folder;
  std::filesystem::create_directories(folder.path("a b"));
  std::filesystem::copy_file(PROBE_LIBRARY, folder.path("a b/lib.so"));
  const Ran ran = test::run({kTraceaf, "true"}, {{{"TRACEAF_LIBRARY", folder.path("a b/lib.so")}}, {}, {}, false});
  EXPECT_EQ(ran.code(), 125);
  EXPECT_TRUE(has(ran.err, "space or a colon")) << ran.err;
}

// ---- programs that cannot be traced
// ----------------------------------------------------------------------------------

TEST(Launcher, StaticProgramRunsUntraced) {
  const Ran ran = record({"--", STATIC_PROGRAM});
  EXPECT_EQ(ran.code(), 42) << ran.err;  // it checks that neither variable is set
  EXPECT_TRUE(has(ran.err, "is statically linked")) << ran.err;
  EXPECT_TRUE(has(ran.err, "untraced"));
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1);
}

TEST(Launcher, InterpreterLinesAreFollowed) {
  const Folder folder;
  const std::string script = folder.write("script", std::string("#! ") + STATIC_PROGRAM + " arg\n", 0755);
  const std::string outer = folder.write("outer", "#!" + script + "\n", 0755);
  const Ran ran = record({"--", outer});
  EXPECT_EQ(ran.code(), 42) << ran.err;
  EXPECT_TRUE(has(ran.err, std::string(STATIC_PROGRAM) + " is statically linked")) << ran.err;
}

// A copy of the static program with some bytes of its header changed: what the launcher says before it runs it.
std::string said_of_patched(size_t offset, char byte) {
  const Folder folder;
  std::ifstream in(STATIC_PROGRAM, std::ios::binary);
  std::string image{std::istreambuf_iterator<char>(in), {}};
  image[offset] = byte;
  return record({"--", folder.write("patched", image, 0755)}).err;
}

TEST(Launcher, OtherMachinesAreRecognised) {
  EXPECT_TRUE(has(said_of_patched(4, 1), "is a 32-bit program"));
  EXPECT_TRUE(has(said_of_patched(18, '\xb7'), "another machine"));
}

TEST(Launcher, SetuidProgramsAreRecognised) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  const Folder folder;
  const std::string program = folder.path("su");
  std::filesystem::copy_file("/bin/true", program);
  ASSERT_EQ(chown(program.c_str(), 65534, 65534), 0);
  ASSERT_EQ(chmod(program.c_str(), 04755), 0);
  const Ran ran = record({"--", program});
  EXPECT_EQ(ran.code(), 0);
  EXPECT_TRUE(has(ran.err, "is setuid")) << ran.err;
  EXPECT_FALSE(has(ran.err, "probe:"));
}

// A copy of /bin/true with a string in it replaced by a shorter one: what the launcher says before it runs it.
std::string said_with(const std::string& from, const std::string& to) {
  std::ifstream in("/bin/true", std::ios::binary);
  std::string image{std::istreambuf_iterator<char>(in), {}};
  const size_t at = image.find(from);
  if (at == std::string::npos) return "not found in /bin/true: " + from;
  image.replace(at, to.size(), to);
  image[at + to.size()] = 0;
  const Folder folder;
  return record({"--", folder.write("patched", image, 0755)}).err;
}

TEST(Launcher, OtherLoadersAreRecognised) {
  EXPECT_TRUE(has(said_with("/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1"), "is built for musl"));
  EXPECT_TRUE(has(said_with("/lib64/ld-linux-x86-64.so.2", "/gnu/ld.so"), "not glibc's loader"));
}

TEST(Launcher, SanitizersAreRecognised) {
  for (const char* program : {NEEDS_ASAN_PROGRAM, HAS_ASAN_PROGRAM}) {
    const Ran ran = record({"--", program});
    EXPECT_EQ(ran.code(), 42) << ran.err;
    EXPECT_TRUE(has(ran.err, "is built with a sanitizer")) << ran.err;
  }
}

// ---- signals
// -----------------------------------------------------------------------------------------------------------

TEST(Launcher, SignalsSentToItReachTheCommandOnce) {
  How how;
  how.environment = {{"PROBE_QUIET", "1"}};
  how.meanwhile = [](pid_t launcher) { kill(launcher, SIGUSR1); };
  const Ran ran = record(
      {"--", "sh", "-c",
       "trap 'n=$((n+1))' USR1; n=0; echo ready; i=0; while [ $i -lt 5 ]; do sleep 0.1; i=$((i+1)); done; exit $n"},
      how);
  EXPECT_EQ(ran.code(), 1) << ran.err;
}

TEST(Launcher, TermEndsTheCommandAndTheLauncherAlike) {
  How how;
  how.meanwhile = [](pid_t launcher) { kill(launcher, SIGTERM); };
  EXPECT_EQ(record({"--", "sh", "-c", "echo ready; exec sleep 30"}, how).signal(), SIGTERM);
}

TEST(Launcher, AnInterruptThatTheCommandSurvivesDoesNotEndTheLauncher) {
  How how;
  how.meanwhile = [](pid_t launcher) { kill(launcher, SIGINT); };
  EXPECT_EQ(record({"--", "sh", "-c", "trap 'exit 5' INT; echo ready; sleep 2 & wait"}, how).code(), 5);
}

TEST(Launcher, AnIgnoredSigchldIsLeftToTheCommand) {
  How how;
  how.ignore_sigchld = true;
  const Ran ran = record({"--", "grep", "SigIgn", "/proc/self/status"}, how);
  EXPECT_EQ(ran.code(), 0);
  std::smatch mask;
  ASSERT_TRUE(std::regex_search(ran.out, mask, std::regex("([0-9a-f]{16})"))) << ran.out;
  EXPECT_NE(std::stoull(mask[1], nullptr, 16) & (1U << (SIGCHLD - 1)), 0U) << ran.out;
}

TEST(Launcher, SaysNothingOnStandardOutput) {
  const Folder folder;
  How how;
  how.folder = folder.path();
  const Ran ran = record({"--", "true"}, how);
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(has(ran.err, "traceaf: no trace was written")) << ran.err;
  EXPECT_FALSE(has(record({"-q", "--", "true"}, how).err, "traceaf:"));
}

TEST(Launcher, HelpShowsEveryOptionOfTheTable) {
  const Ran ran = test::run({kTraceaf, "record", "--help"});
  EXPECT_EQ(ran.code(), 0);
  for (const char* option : {"--out", "--compress", "--buffer", "--generation ", "--generation-size", "--depth",
                             "--stacks", "--follow", "--standby", "--option", "zstd|none", "[1024]"}) {
    EXPECT_TRUE(has(ran.out, option)) << option << "\n" << ran.out;
  }
  EXPECT_EQ(test::run({kTraceaf, "--version"}).code(), 0);
  EXPECT_EQ(test::run({kTraceaf}).code(), 2);
}

}  // namespace
}  // namespace traceaf
