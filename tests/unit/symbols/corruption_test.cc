// Files that were damaged or cut: no crash, no endless loop, a name for every address.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <random>
#include <sstream>

#include "fixture.h"

namespace traceaf::reader {
namespace {

std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class Corruption : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string name = std::string(GetParam()) + "/program";
    if (!fixture::exists(name)) GTEST_SKIP() << fixture::missing();
    module = fixture::module_of(fixture::path(name), false);
    original = contents(module.path);
    backs = fixture::backs_of(fixture::calls_of(fixture::path(name == "mini/program" ? "gcc-dwarf5/program" : name)));
    ASSERT_FALSE(backs.empty());
    module.path = fixture::path(std::string(GetParam()) + "/damaged." + std::to_string(getpid()));
  }
  void TearDown() override { std::remove(module.path.c_str()); }

  void try_contents(const std::string& data) {
    { std::ofstream(module.path, std::ios::binary) << data; }
    SymbolOptions options;
    options.debug_dirs.clear();
    const auto r = fixture::resolve(module, backs, options);
    ASSERT_EQ(r.frames.size(), backs.size());
    for (const auto& frames : r.frames) {
      ASSERT_FALSE(frames.empty());
      for (const SourceFrame& frame : frames) ASSERT_FALSE(frame.function.empty());
    }
  }

  Module module;
  std::string original;
  std::vector<uint64_t> backs;
};

TEST_P(Corruption, ByFlippedBytes) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(1);
  for (unsigned seed = 1; seed < 2000 && Clock::now() < end; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::string data = original;
    // A few bytes anywhere, or many, or some in the headers.
    const size_t flips = 1 + random() % (random() % 4 == 0 ? 400 : 20);
    for (size_t i = 0; i < flips; ++i) {
      const size_t at = random() % 6 == 0 ? random() % 64 : random() % data.size();
      data[at] = static_cast<char>(random() % 3 != 0 ? random() : random() % 2 * 255);
    }
    try_contents(data);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Corruption, ByACutFile) {
  for (size_t part = 0; part < 40; ++part) {
    try_contents(original.substr(0, original.size() * part / 40));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Corruption,
                         testing::Values("gcc-dwarf4", "gcc-dwarf5", "gcc-split5", "gcc-types", "clang-dwarf5", "mini",
                                         "dwz"),
                         [](const testing::TestParamInfo<const char*>& form) {
                           std::string name = form.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace traceaf::reader
