// What the symbolizer says about the fixtures, checked against their source text.
#include <gtest/gtest.h>

#include <algorithm>

#include "fixture.h"

namespace traceaf::reader {
namespace {

using Frames = std::vector<SourceFrame>;

std::vector<Frames> all_stacks(const std::string& name) {
  const std::string file = fixture::path(name);
  return fixture::resolve(file, fixture::backs_of(fixture::calls_of(file))).frames;
}

// The stack whose innermost frame is `function` on the line marked `mark`; empty when there is none.
Frames stack_at(const std::vector<Frames>& stacks, const std::string& function, const std::string& source,
                const std::string& mark) {
  const uint32_t line = fixture::marked_line(source, mark);
  for (const Frames& frames : stacks) {
    if (frames[0].function == function && frames[0].line == line) return frames;
  }
  return {};
}

class Compilers : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (fixture::exists(std::string(GetParam()) + "/program")) return;
    ASSERT_FALSE(fixture::must_run()) << fixture::missing();
    GTEST_SKIP() << fixture::missing();
  }
};

TEST_P(Compilers, InlinedCallsAreListedInnermostFirstEachAtItsOwnCall) {
  const auto stacks = all_stacks(std::string(GetParam()) + "/program");
  const Frames frames = stack_at(stacks, "void* outer::innermost<int>(int*)", "shapes.cc", "innermost");
  const Frames dropped = stack_at(stacks, "outer::innermost<int>(int*)", "shapes.cc", "innermost");
  EXPECT_TRUE(frames.empty()) << "return types are left out";
  ASSERT_EQ(dropped.size(), 3u);
  EXPECT_EQ(dropped[1].function, "outer::middle<int>(int*)");
  EXPECT_EQ(dropped[1].line, fixture::marked_line("shapes.cc", "middle"));
  EXPECT_EQ(dropped[2].function, "outer::(anonymous namespace)::hidden(int*)");
  EXPECT_EQ(dropped[2].line, fixture::marked_line("shapes.cc", "hidden"));
  EXPECT_TRUE(dropped[0].inlined);
  EXPECT_TRUE(dropped[1].inlined);
  EXPECT_FALSE(dropped[2].inlined);
  for (const SourceFrame& frame : dropped) {
    EXPECT_TRUE(frame.file.ends_with("/fixtures/shapes.cc")) << frame.file;
    EXPECT_GT(frame.column, 0u);
  }
}

TEST_P(Compilers, TemplatesAreNamedWithTheirArguments) {
  const auto stacks = all_stacks(std::string(GetParam()) + "/program");
  EXPECT_FALSE(stack_at(stacks, "outer::Box<double, 4>::fill(double)", "shapes.cc", "Box::fill").empty());
}

TEST_P(Compilers, LambdasAreNamedAfterTheirFunction) {
  const uint32_t line = fixture::marked_line("shapes.cc", "lambda");
  bool found = false;
  for (const Frames& frames : all_stacks(std::string(GetParam()) + "/program")) {
    if (frames[0].line != line || !frames[0].file.ends_with("shapes.cc")) continue;
    found = true;
    EXPECT_TRUE(frames[0].function.starts_with("outer::with_lambda(int)::")) << frames[0].function;
    EXPECT_NE(frames[0].function.find("operator()"), std::string::npos) << frames[0].function;
  }
  EXPECT_TRUE(found);
}

TEST_P(Compilers, NamesOfCStayPlain) {
  const auto stacks = all_stacks(std::string(GetParam()) + "/program");
  const Frames frames = stack_at(stacks, "duplicate", "plain.c", "duplicate");
  ASSERT_GE(frames.size(), 2u);
  EXPECT_EQ(frames[1].function, "only_in_symtab");
  EXPECT_EQ(frames[1].line, fixture::marked_line("plain.c", "only_in_symtab"));
}

INSTANTIATE_TEST_SUITE_P(Forms, Compilers,
                         testing::Values("gcc-dwarf4", "gcc-dwarf5", "gcc-split5", "gcc-lto", "clang-dwarf5",
                                         "clang-split4"),
                         [](const testing::TestParamInfo<const char*>& form) {
                           std::string name = form.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(Names, SplitDebugFilesGiveWhatWholeOnesGive) {
  fixture::expect_same(all_stacks("gcc-split4/program"), all_stacks("gcc-dwarf4/program"));
  fixture::expect_same(all_stacks("gcc-split5/program"), all_stacks("gcc-dwarf5/program"));
}

// The linker leaves the line table of a discarded function at addresses from 0, over those of live code.
TEST(Names, LinesOfDiscardedFunctionsDoNotShow) {
  for (const std::string name : {"gcc-discarded/program", "clang-discarded/program"}) {
    if (!fixture::exists(name)) continue;
    size_t checked = 0;
    const uint32_t discarded = fixture::marked_line("shapes.cc", "discarded");
    const auto calls = fixture::calls_of(fixture::path(name));
    const auto stacks = all_stacks(name);
    for (size_t i = 0; i < calls.size(); ++i) {
      EXPECT_NE(calls[i].function, "never_called");
      for (const SourceFrame& frame : stacks[i]) {
        EXPECT_NE(frame.line, discarded) << frame.function;
        EXPECT_NE(frame.function, "never_called");
      }
      if (calls[i].function != "only_in_symtab" && calls[i].function != "plain_entry") continue;
      for (const SourceFrame& frame : stacks[i]) EXPECT_TRUE(frame.file.ends_with("/plain.c")) << frame.file;
      ++checked;
    }
    EXPECT_GT(checked, 4u);
  }
}

TEST(Names, AUnitWithoutRangesIsFoundByItsFunctions) {
  const std::string file = fixture::path("rangeless/program");
  const auto calls = fixture::calls_of(file);
  ASSERT_EQ(calls.size(), 1u);
  const auto [frames, coverage] = fixture::resolve(file, fixture::backs_of(calls));
  EXPECT_EQ(frames[0][0].function, "space::begin_here") << "qualified by the DIEs around it";
  EXPECT_EQ(coverage.state, SymbolState::kDebugInfo) << coverage.note;
}

TEST(Names, WithoutLinesThereAreStillInlinedFunctions) {
  const std::string file = fixture::path("gcc-dwarf5/program");
  const auto backs = fixture::backs_of(fixture::calls_of(file));
  SymbolOptions options;
  options.lines = false;
  const auto with = fixture::resolve(file, backs).frames;
  const auto without = fixture::resolve(fixture::module_of(file), backs, options).frames;
  ASSERT_EQ(with.size(), without.size());
  for (size_t i = 0; i < with.size(); ++i) {
    ASSERT_EQ(with[i].size(), without[i].size());
    for (size_t f = 0; f < with[i].size(); ++f) {
      EXPECT_EQ(with[i][f].function, without[i][f].function);
      EXPECT_EQ(without[i][f].line, 0u);
      EXPECT_EQ(without[i][f].file, "");
    }
  }
}

TEST(Names, CodeWithoutALineNeverTakesOneOfAnotherFunction) {
  const std::string name = "clang-O0/program";
  if (!fixture::exists(name)) GTEST_SKIP() << fixture::missing();
  // The lines of each function of shapes.cc lie in a range of their own there.
  const uint32_t first = fixture::marked_line("shapes.cc", "hidden");
  for (const Frames& frames : all_stacks(name)) {
    if (frames.back().function != "main") continue;
    EXPECT_GT(frames.back().line, first);
  }
}

TEST(Names, RustNamesHaveNoHash) {
  if (!fixture::exists("rust/program")) GTEST_SKIP() << fixture::missing();
  bool generic = false;
  for (const Frames& frames : all_stacks("rust/program")) {
    for (const SourceFrame& frame : frames) {
      EXPECT_FALSE(frame.function.starts_with("_R") || frame.function.starts_with("_ZN")) << frame.function;
      const size_t hash = frame.function.rfind("::h");
      EXPECT_FALSE(hash != std::string::npos && frame.function.size() - hash == 19) << frame.function;
      generic = generic || frame.function.find("rusty::inner::Holder<") != std::string::npos;
    }
  }
  EXPECT_TRUE(generic);
}

}  // namespace
}  // namespace traceaf::reader
