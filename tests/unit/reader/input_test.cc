// What counts as a trace file, and how decompression meets damage.
#include "reader/input.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "reader/read.h"
#include "reader/trace.h"
#include "tests/support/trace_writer.h"

namespace traceaf::reader {
namespace {

using testing::Bytes;
using testing::TraceWriter;

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/traceaf-input-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
  }
  void TearDown() override { EXPECT_EQ(system(("rm -r " + folder_).c_str()), 0); }
  std::string write(const std::string& name, const Bytes& bytes) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  static std::string open_error(const std::string& path) {
    auto reader = TraceReader::open(path, {});
    return reader.ok() ? "" : reader.error().text();
  }
  std::string folder_;
};

Bytes text(std::string_view s) { return {s.begin(), s.end()}; }

TEST_F(Files, NoTraceIsRefusedWithWhatWasFound) {
  const auto refuses = [&](const std::string& path, const std::string& found) {
    const std::string error = open_error(path);
    EXPECT_NE(error.find(path), std::string::npos) << error;
    EXPECT_NE(error.find(found), std::string::npos) << error;
  };
  refuses(folder_ + "/none", "No such file");
  refuses(folder_, "found a folder");
  refuses("/dev/zero", "found a character device");
  const std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  refuses(fifo, "found a FIFO");
  refuses(write("empty", {}), "found an empty file");
  refuses(write("png", text("\x89PNG\r\n\x1a\n0123456789")), "found a PNG image");
  refuses(write("newer", text(std::string_view("go 1.27 trace\0\0\0rest", 20))),
          "version 1.27 of the format, which is newer");
  refuses(write("older", text(std::string_view("go 1.23 trace\0\0\0rest", 20))),
          "version 1.23 of the format, which is older");
  refuses(write("short", text("go 1.26")), "found only its first 7 bytes");
  refuses(write("words", text("hello, world, here I am")), "found \"hello, world, he\"");
  refuses(write("zpng", testing::zstd_frame(text("\x89PNG\r\n\x1a\n0123456789"))), "found a PNG image");
  const std::string unreadable = write("unreadable", text("go 1.26 trace"));
  chmod(unreadable.c_str(), 0);
  if (geteuid() != 0) refuses(unreadable, "cannot be opened");
}

TEST_F(Files, PlainAndCompressedTracesReadAlike) {
  TraceWriter trace;
  auto& gen = trace.generation(1);
  gen.process(0).site(1, 0, wire::Entry::k_malloc, 8).alloc(1, 2000, 0x10010, 1).end_row(3000);
  for (const auto& path : {write("plain", trace.bytes()), write("zstd", trace.compressed())}) {
    auto profile = read_profile(path, {});
    ASSERT_TRUE(profile.ok()) << profile.error().text();
    EXPECT_TRUE(profile.value().ending.complete) << profile.value().ending.note;
    EXPECT_EQ(profile.value().live.bytes, 8U);
  }
}

TEST_F(Files, ProgressReachesTheSizeOfTheFile) {
  TraceWriter trace;
  trace.generation(1).process(0).end_row(3000);
  const std::string path = write("t", trace.compressed());
  uint64_t last = 0;
  uint64_t size = 0;
  ReadOptions options;
  options.progress = [&](uint64_t done, uint64_t all) {
    last = done;
    size = all;
  };
  ASSERT_TRUE(read_profile(path, options).ok());
  EXPECT_EQ(last, trace.compressed().size());
  EXPECT_EQ(size, trace.compressed().size());
}

// Reads everything that an input yields.
Bytes drain(Input& input) {
  Bytes out;
  while (const size_t n = input.need(1)) {
    out.insert(out.end(), input.data(), input.data() + n);
    input.consume(n);
  }
  return out;
}

// Bytes that zstd can shrink but not to nothing, over several blocks of 128 KiB.
Bytes large_plain() {
  Bytes out;
  uint64_t state = 1;
  for (size_t i = 0; i < 700'000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    out.push_back(static_cast<uint8_t>((state >> 33) % 40));
  }
  return out;
}

TEST(Input, FramesFollowEachOther) {
  const Bytes plain = large_plain();
  Bytes file = testing::zstd_frame(plain);
  const Bytes more = testing::zstd_frame({1, 2, 3});
  const Bytes empty = testing::zstd_frame({});
  file.insert(file.end(), empty.begin(), empty.end());
  file.insert(file.end(), more.begin(), more.end());
  auto input = Input::from_bytes(file, "f");
  ASSERT_TRUE(input.ok());
  Bytes expected = plain;
  expected.insert(expected.end(), {1, 2, 3});
  EXPECT_EQ(drain(*input.value()), expected);
  EXPECT_FALSE(input.value()->fault());
  EXPECT_EQ(input.value()->offset(), expected.size());
}

TEST(Input, CutFrameYieldsWholeBlocksAndSaysWhere) {
  const Bytes plain = large_plain();
  Bytes file = testing::zstd_frame(plain);
  file.resize(file.size() - 10);
  auto input = Input::from_bytes(file, "f");
  ASSERT_TRUE(input.ok());
  const Bytes out = drain(*input.value());
  EXPECT_GE(out.size(), 5U * 128 * 1024) << "all blocks but the last";
  EXPECT_TRUE(std::equal(out.begin(), out.end(), plain.begin()));
  ASSERT_TRUE(input.value()->fault());
  EXPECT_TRUE(input.value()->cut());
  EXPECT_TRUE(input.value()->fault()->compressed);
  EXPECT_EQ(*input.value()->fault()->offset, file.size());
}

TEST(Input, DamagedFrameYieldsTheBlocksBefore) {
  const Bytes plain = large_plain();
  Bytes file = testing::zstd_frame(plain);
  // Damage over more than a block (of about 90 kB) hits the header of one, which cannot be taken for anything else.
  for (size_t i = file.size() / 2; i < file.size() / 2 + 100'000; ++i) file[i] = 0xff;
  auto input = Input::from_bytes(file, "f");
  ASSERT_TRUE(input.ok());
  const Bytes out = drain(*input.value());
  ASSERT_TRUE(input.value()->fault());
  EXPECT_FALSE(input.value()->cut());
  EXPECT_GT(*input.value()->fault()->offset, file.size() / 3);
  EXPECT_LT(*input.value()->fault()->offset, file.size());
  ASSERT_GE(out.size(), 2U * 128 * 1024);
  EXPECT_TRUE(std::equal(out.begin(), out.begin() + 2 * 128 * 1024, plain.begin()));
}

}  // namespace
}  // namespace traceaf::reader
