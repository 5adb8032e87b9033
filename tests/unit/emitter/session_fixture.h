// Runs the recorder in a child process (it is one per process image) and reads back what it wrote.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "emitter/recorder.h"
#include "reader/read.h"

namespace traceaf::emitter {

class SessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "traceaf-unit-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string file(const char* name = "t.traf") const { return folder_ + "/" + name; }

  // In a child: starts a session with `options` (the output is file()) and calls `work`. Returns its wait status.
  template <typename Work>
  int record(const std::string& options, Work work) {
    const pid_t child = fork();
    if (child == 0) {
      std::string text = "TRACEALLOCFREE=out=" + file() + "," + options;
      char* envp[] = {text.data(), nullptr};
      char name[] = "unit";
      char* argv[] = {name, nullptr};
      process_init(1, argv, envp);
      work();
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
  }

  [[nodiscard]] reader::Profile read(const char* name = "t.traf") const {
    auto result = reader::read_profile(file(name), {});
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().text());
    return result.ok() ? result.value() : reader::Profile{};
  }

  // Addresses of blocks in memory that is mapped and never touched.
  static const void* block(uint64_t i) {
    static char* const memory = static_cast<char*>(
        mmap(nullptr, size_t{32} << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    return memory + 16 * i;
  }
  static void birth(uint64_t i, size_t size) {
    object_born(__builtin_frame_address(0), block(i), size, wire::Entry::k_malloc, 0);
  }
  static void death(uint64_t i) { object_dying(__builtin_frame_address(0), block(i)); }
  static void finish() { process_ending(wire::EndReason::kExit, 0, true); }

 private:
  std::string folder_;
};

}  // namespace traceaf::emitter
