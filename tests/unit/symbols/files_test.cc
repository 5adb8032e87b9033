// Which files symbols come from, which are refused, and what the user is told about the rest.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "emitter/wire/rows.h"
#include "fixture.h"

namespace traceaf::reader {
namespace {

namespace fs = std::filesystem;
using fixture::expect_same;

// Call sites of a stripped program: those of the same program with its symbols.
std::vector<uint64_t> calls_in(const std::string& name) {
  return fixture::backs_of(fixture::calls_of(fixture::path(name)));
}

SymbolOptions no_debug_dirs() {
  SymbolOptions options;
  options.debug_dirs.clear();
  return options;
}

class Scratch : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "symbols.XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override { fs::remove_all(folder); }
  std::string in(const std::string& name) const { return folder + "/" + name; }
  std::string folder;
};

using Files = Scratch;

#define REQUIRE_FIXTURE(name)                                         \
  if (!fixture::exists(name)) {                                       \
    ASSERT_FALSE(fixture::must_run()) << fixture::missing();          \
    GTEST_SKIP() << name << " was not built: " << fixture::missing(); \
  }

TEST(DebugFiles, BesideTheProgramByLink) {
  const auto backs = calls_in("gcc-dwarf5/program");
  const auto whole = fixture::resolve(fixture::path("gcc-dwarf5/program"), backs);
  const auto apart = fixture::resolve(fixture::path("debug-link/program"), backs);
  expect_same(apart.frames, whole.frames);
  EXPECT_EQ(apart.coverage.state, SymbolState::kDebugInfo) << apart.coverage.note;
  EXPECT_EQ(apart.coverage.debug_file, fixture::path("debug-link/.debug/other-name.debug"));
}

TEST(DebugFiles, ByChecksumWhereThereIsNoBuildId) {
  const auto backs = calls_in("gcc-dwarf5/program");
  const auto whole = fixture::resolve(fixture::path("gcc-dwarf5/program"), backs);
  const auto apart = fixture::resolve(fixture::path("debug-link-no-id/program"), backs);
  expect_same(apart.frames, whole.frames);
  EXPECT_EQ(apart.coverage.state, SymbolState::kDebugInfo) << apart.coverage.note;
}

TEST(DebugFiles, WithAnotherChecksumIsRefused) {
  const auto damaged =
      fixture::resolve(fixture::path("debug-link-no-id/damaged/program"), calls_in("gcc-dwarf5/program"));
  EXPECT_NE(damaged.coverage.state, SymbolState::kDebugInfo);
  EXPECT_NE(damaged.coverage.note.find("another build"), std::string::npos) << damaged.coverage.note;
  for (const auto& frames : damaged.frames) EXPECT_EQ(frames.back().line, 0u);
}

TEST(DebugFiles, InADirectoryByBuildId) {
  const std::string original = fixture::exists("clang-dwarf5/program") ? "clang-dwarf5/program" : "gcc-dwarf5/program";
  const auto backs = calls_in(original);
  const auto whole = fixture::resolve(fixture::path(original), backs);
  SymbolOptions options;
  options.debug_dirs = {"/nowhere", fixture::path("by-build-id/debug")};
  const Module module = fixture::module_of(fixture::path("by-build-id/program"));
  const auto apart = fixture::resolve(module, backs, options);
  expect_same(apart.frames, whole.frames);
  EXPECT_EQ(apart.coverage.state, SymbolState::kDebugInfo) << apart.coverage.note;

  // The debug file alone is enough: the program may have been upgraded since.
  Module gone = module;
  gone.path = "/nowhere/program";
  const auto alone = fixture::resolve(gone, backs, options);
  expect_same(alone.frames, whole.frames);
  EXPECT_EQ(alone.coverage.state, SymbolState::kDebugInfo) << alone.coverage.note;
}

TEST(DebugFiles, MadeBeforeTheProgramMoved) {
  const std::string program = fixture::path("moved/program");
  // The program lies 0x5000000 above the link that the debug file was made of, which equals gcc-dwarf5 but for the id.
  const auto calls = fixture::calls_of(fixture::path("gcc-dwarf5/program"));
  const auto whole = fixture::resolve(fixture::path("gcc-dwarf5/program"), fixture::backs_of(calls));
  std::vector<uint64_t> backs;
  backs.reserve(calls.size());
  for (const auto& call : calls) backs.push_back(call.back + 0x5000000);
  const auto moved = fixture::resolve(program, backs);
  expect_same(moved.frames, whole.frames);
  EXPECT_EQ(moved.coverage.debug_file, fixture::path("moved/.debug/program.debug"));
}

TEST(DebugFiles, SharedByDwz) {
  REQUIRE_FIXTURE("dwz/program");
  const auto backs = calls_in("gcc-dwarf4/program");
  const auto whole = fixture::resolve(fixture::path("gcc-dwarf4/program"), backs);
  const auto shared = fixture::resolve(fixture::path("dwz/program"), backs);
  expect_same(shared.frames, whole.frames);
  EXPECT_EQ(shared.coverage.state, SymbolState::kDebugInfo);
  EXPECT_EQ(shared.coverage.note, "");
}

TEST_F(Files, WithoutTheFileSharedByDwzTheUserIsTold) {
  REQUIRE_FIXTURE("dwz/program");
  fs::copy(fixture::path("dwz/program"), in("program"));
  const auto alone = fixture::resolve(in("program"), calls_in("gcc-dwarf4/program"));
  EXPECT_NE(alone.coverage.note.find("common.debug"), std::string::npos) << alone.coverage.note;
}

TEST(DebugFiles, CompressedWithZstdAreNamedAsUnsupported) {
  REQUIRE_FIXTURE("zstd/program");
  const auto r = fixture::resolve(fixture::path("zstd/program"), calls_in("gcc-dwarf5/program"));
  if (r.coverage.state == SymbolState::kDebugInfo) GTEST_SKIP() << "this elfutils reads zstd";
  EXPECT_EQ(r.coverage.state, SymbolState::kUnsupported);
  EXPECT_NE(r.coverage.note.find("zstd"), std::string::npos) << r.coverage.note;
  EXPECT_EQ(r.coverage.unresolved, 0u) << "the symbol table still has the functions";
}

TEST(DebugFiles, PackedInADwpAreNamedAsUnsupported) {
  REQUIRE_FIXTURE("split-packed/program");
  const auto r = fixture::resolve(fixture::path("split-packed/program"), calls_in("split-packed/program"));
  EXPECT_EQ(r.coverage.state, SymbolState::kUnsupported);
  EXPECT_NE(r.coverage.note.find("program.dwp"), std::string::npos) << r.coverage.note;
  EXPECT_EQ(r.coverage.unresolved, 0u);
}

TEST(DebugFiles, SplitOnesThatAreGoneLeaveLinesAndSymbols) {
  const std::string file = fixture::path("split-lost/program");
  const auto calls = fixture::calls_of(file);
  const auto r = fixture::resolve(file, fixture::backs_of(calls));
  EXPECT_EQ(r.coverage.state, SymbolState::kSymbolTable);
  EXPECT_NE(r.coverage.note.find(".dwo"), std::string::npos) << r.coverage.note;
  EXPECT_EQ(r.coverage.unresolved, 0u);
  bool seen = false;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].function != "main") continue;
    seen = true;
    EXPECT_EQ(r.frames[i].back().function, "main");
    EXPECT_GT(r.frames[i].back().line, 0u);
  }
  EXPECT_TRUE(seen);
}

TEST(SymbolTables, NameStaticFunctions) {
  const std::string file = fixture::path("symtab-only/program");
  const auto calls = fixture::calls_of(file);
  const auto r = fixture::resolve(file, fixture::backs_of(calls));
  EXPECT_EQ(r.coverage.state, SymbolState::kSymbolTable);
  EXPECT_NE(r.coverage.note.find("-dbgsym"), std::string::npos) << r.coverage.note;
  size_t checked = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    ASSERT_EQ(r.frames[i].size(), 1u);
    if (calls[i].function != "only_in_symtab" && calls[i].function != "main") continue;
    EXPECT_EQ(r.frames[i][0].function, calls[i].function);
    ++checked;
  }
  EXPECT_GT(checked, 4u);
  EXPECT_EQ(r.coverage.unresolved, 0u);
}

TEST(SymbolTables, OfStrippedLibrariesNameWhatTheyExport) {
  const auto calls = fixture::calls_of(fixture::path("gcc-shared/program"));
  const auto r = fixture::resolve(fixture::path("dynsym-only/program"), fixture::backs_of(calls));
  EXPECT_EQ(r.coverage.state, SymbolState::kSymbolTable);
  size_t exported = 0, hidden = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string& name = r.frames[i][0].function;
    if (calls[i].function == "plain_entry") {
      EXPECT_EQ(name, "plain_entry");
      ++exported;
    } else if (calls[i].function == "only_in_symtab") {
      EXPECT_EQ(name, fmt::format("program+{:#x}", calls[i].back)) << "not the neighbour's name";
      ++hidden;
    }
  }
  EXPECT_GT(exported, 0u);
  EXPECT_GT(hidden, 0u);
  EXPECT_GE(r.coverage.unresolved, hidden);
}

TEST(SymbolTables, InMiniDebugInfoNameStaticFunctions) {
  REQUIRE_FIXTURE("mini/program");
  const auto calls = fixture::calls_of(fixture::path("gcc-dwarf5/program"));
  const auto r = fixture::resolve(fixture::path("mini/program"), fixture::backs_of(calls));
  EXPECT_EQ(r.coverage.state, SymbolState::kSymbolTable) << r.coverage.note;
  size_t checked = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].function != "only_in_symtab") continue;
    EXPECT_EQ(r.frames[i][0].function, "only_in_symtab");
    ++checked;
  }
  EXPECT_GT(checked, 0u);
}

TEST_F(Files, WithAnotherBuildIdAreRefused) {
  Module module = fixture::module_of(fixture::path("gcc-dwarf5/program"));
  const std::string recorded(40, 'a');
  const std::string found = module.build_id;
  module.build_id = recorded;
  const auto calls = fixture::calls_of(module.path);
  const auto r = fixture::resolve(module, fixture::backs_of(calls), no_debug_dirs());
  EXPECT_EQ(r.coverage.state, SymbolState::kMismatch);
  EXPECT_EQ(r.coverage.debug_file, "");
  EXPECT_NE(r.coverage.note.find(recorded), std::string::npos) << r.coverage.note;
  EXPECT_NE(r.coverage.note.find(found), std::string::npos) << r.coverage.note;
  EXPECT_EQ(r.coverage.unresolved, r.coverage.addresses);
  for (size_t i = 0; i < calls.size(); ++i) {
    ASSERT_EQ(r.frames[i].size(), 1u);
    EXPECT_EQ(r.frames[i][0].function, fmt::format("program+{:#x}", calls[i].back));
  }
}

TEST_F(Files, BelowTheSysrootComeFirst) {
  fs::create_directories(in("root/opt"));
  fs::copy(fixture::path("gcc-dwarf5/program"), in("root/opt/program"));
  Module module = fixture::module_of(in("root/opt/program"));
  module.path = "/opt/program";
  SymbolOptions options = no_debug_dirs();
  const auto backs = calls_in("gcc-dwarf5/program");
  EXPECT_EQ(fixture::resolve(module, backs, options).coverage.state, SymbolState::kMissing);
  options.sysroot = in("root/");
  const auto r = fixture::resolve(module, backs, options);
  EXPECT_EQ(r.coverage.state, SymbolState::kDebugInfo) << r.coverage.note;
  EXPECT_EQ(r.coverage.debug_file, in("root/opt/program"));
  EXPECT_EQ(r.coverage.unresolved, 0u);
}

TEST_F(Files, ThatWereDeletedAreUsedOnlyWhenTheBuildIdProvesThem) {
  Module module = fixture::module_of(fixture::path("gcc-dwarf5/program"));
  module.path += " (deleted)";
  const auto backs = calls_in("gcc-dwarf5/program");
  EXPECT_EQ(fixture::resolve(module, backs, no_debug_dirs()).coverage.state, SymbolState::kDebugInfo);
  module.build_id.clear();
  const auto r = fixture::resolve(module, backs, no_debug_dirs());
  EXPECT_EQ(r.coverage.state, SymbolState::kMissing);
  EXPECT_NE(r.coverage.note.find("deleted"), std::string::npos) << r.coverage.note;
  EXPECT_EQ(r.frames[0][0].function, fmt::format("program+{:#x}", backs[0]));
}

TEST_F(Files, ThatAreMissingAreNamed) {
  Module module;
  module.start = module.bias = 0x10000;
  module.path = in("libgone.so.1");
  module.build_id = std::string(40, '1');
  const auto r = fixture::resolve(module, {0x1234}, no_debug_dirs());
  EXPECT_EQ(r.coverage.state, SymbolState::kMissing);
  EXPECT_NE(r.coverage.note.find("libgone.so.1"), std::string::npos) << r.coverage.note;
  EXPECT_EQ(r.frames[0][0].function, "libgone.so.1+0x1234");
  EXPECT_EQ(r.coverage.unresolved, 1u);
}

TEST_F(Files, ThatAreNoElfFilesAreNamed) {
  std::ofstream(in("text")) << "This is not a program.\n";
  std::ofstream(in("empty")) << "";
  ASSERT_EQ(mkfifo(in("fifo").c_str(), 0600), 0);
  fs::create_directory(in("folder"));
  for (const std::string name : {"text", "empty", "fifo", "folder"}) {
    Module module;
    module.start = module.bias = 0x10000;
    module.path = in(name);
    const auto r = fixture::resolve(module, {0x1234}, no_debug_dirs());
    EXPECT_TRUE(r.coverage.state == SymbolState::kUnsupported || r.coverage.state == SymbolState::kMissing) << name;
    EXPECT_NE(r.coverage.note.find(in(name)), std::string::npos) << r.coverage.note;
    EXPECT_EQ(r.frames[0][0].function, name + "+0x1234");
  }
}

TEST(Modules, OfTheKernelHaveNoFile) {
  Module module;
  module.flags = wire::kModuleVdso;
  module.start = module.bias = 0x7fff00000000;
  module.path = "linux-vdso.so.1";
  const auto r = fixture::resolve(module, {0x9f1}, no_debug_dirs());
  EXPECT_EQ(r.frames[0][0].function, "[vdso]+0x9f1");
  EXPECT_NE(r.coverage.note.find("vdso"), std::string::npos);
}

TEST(Modules, SeveralAreResolvedTogetherInTheOrderOfTheQuestions) {
  const std::vector<std::string> names = {"gcc-dwarf5/program", "gcc-no-pie/program", "gcc-shared/program"};
  std::vector<Module> modules = {Module{}};
  std::vector<std::vector<uint64_t>> backs;
  std::vector<std::vector<std::vector<SourceFrame>>> alone;
  for (const std::string& name : names) {
    modules.push_back(fixture::module_of(fixture::path(name)));
    backs.push_back(calls_in(name));
    alone.push_back(fixture::resolve(fixture::path(name), backs.back()).frames);
  }
  // Round robin, every second question asked twice, with absolute and impossible addresses in between.
  std::vector<Symbolizer::Address> addresses;
  std::vector<std::vector<SourceFrame>> expected;
  const auto plain = [&](uint32_t module, uint64_t offset, const std::string& name) {
    addresses.push_back({module, offset});
    SourceFrame frame;
    frame.function = name;
    expected.push_back({frame});
  };
  for (size_t i = 0; i < 60; ++i) {
    for (uint32_t m = 0; m < names.size(); ++m) {
      const size_t k = (i * 37) % backs[m].size();
      for (size_t times = 0; times < 1 + i % 2; ++times) {
        addresses.push_back({m + 1, backs[m][k] + modules[m + 1].bias - modules[m + 1].start});
        expected.push_back(alone[m][k]);
      }
    }
    plain(0, 0x7f0000000000 + i, fmt::format("{:#x}", 0x7f0000000000 + i));
    plain(77, i, fmt::format("[module 77]+{:#x}", i));
  }
  Symbolizer symbolizer(modules, no_debug_dirs());
  expect_same(symbolizer.resolve(addresses), expected);
  expect_same(symbolizer.resolve(addresses), expected);
  EXPECT_TRUE(symbolizer.resolve({}).empty());
  EXPECT_EQ(symbolizer.coverage().size(), modules.size());
  EXPECT_EQ(symbolizer.coverage()[0].state, SymbolState::kNotLoaded);
}

}  // namespace
}  // namespace traceaf::reader
