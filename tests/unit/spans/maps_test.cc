// Reading the kernel's list of mappings: any buffer size, damaged input, and the small questions about addresses.
#include "emitter/spans/maps.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/unit/spans/replay.h"

namespace traceaf::emitter::spans {
namespace {

constexpr char kText[] =
    "00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/with space\n"
    "00651000-00652000 rw-p 00051000 08:02 173521      /usr/bin/0123-4567 rw (deleted)\n"
    "7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \n"
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

// What a reader with a buffer of `room` bytes makes of `input`.
std::vector<Mapping> parse(const std::string& input, size_t room, bool* complete) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  EXPECT_EQ(write(ends[1], input.data(), input.size()), static_cast<ssize_t>(input.size()));
  close(ends[1]);
  std::vector<char> buffer(room);
  std::vector<Mapping> all;
  {
    MapsReader reader(ends[0], buffer.data(), room);
    Mapping m{};
    while (reader.next(&m)) all.push_back(m);
    *complete = reader.complete();
  }
  close(ends[0]);
  return all;
}

TEST(MapsReader, reads_lines_split_at_any_byte) {
  for (size_t room = 1; room < sizeof kText + 1; ++room) {
    bool complete = false;
    const auto all = parse(kText, room, &complete);
    ASSERT_TRUE(complete) << room;
    ASSERT_EQ(all.size(), 4U);
    EXPECT_EQ(all[0].start, 0x400000U);
    EXPECT_EQ(all[0].end, 0x452000U);
    EXPECT_FALSE(all[0].writable);
    EXPECT_TRUE(all[1].writable);
    EXPECT_EQ(all[2].start, 0x7f0000000000U);
    EXPECT_EQ(all[3].end, 0xffffffffff601000U);
  }
}

TEST(MapsReader, a_list_cut_anywhere_inside_a_line_is_not_complete) {
  const std::string whole = kText;
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    bool complete = true;
    const auto all = parse(whole.substr(0, cut), 7, &complete);
    const bool at_line_end = cut > 0 && whole[cut - 1] == '\n';
    EXPECT_EQ(complete, at_line_end) << cut;
    EXPECT_EQ(all.size(), static_cast<size_t>(std::count(whole.begin(), whole.begin() + static_cast<long>(cut), '\n')));
  }
}

TEST(MapsReader, stops_for_good_at_a_malformed_line) {
  bool complete = true;
  const auto all = parse("1000-2000 rw-p 0 0:0 0\nhello\n3000-4000 rw-p 0 0:0 0\n", 64, &complete);
  EXPECT_FALSE(complete);
  EXPECT_EQ(all.size(), 1U);
}

TEST(MapsReader, sees_what_another_reader_sees) {
  char buffer[512];
  for (int i = 0; i < 3; ++i) {
    const auto expected = test::kernel_maps();
    std::vector<Mapping> all;
    all.reserve(expected.size() + 64);
    MapsReader reader(buffer, sizeof buffer);
    ASSERT_TRUE(reader.ok());
    Mapping m{};
    while (reader.next(&m)) all.push_back(m);
    EXPECT_TRUE(reader.complete());
    EXPECT_NEAR(static_cast<double>(all.size()), static_cast<double>(expected.size()), 64);  // this test allocates, too
    EXPECT_EQ(all.front().start, expected.front().start);
    EXPECT_EQ(all.back().end, expected.back().end);
  }
}

TEST(FindMapping, finds_the_mapping_around_an_address_and_no_other) {
  char buffer[4096];
  auto* at = static_cast<char*>(mmap(nullptr, 5 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(at, MAP_FAILED);
  ASSERT_EQ(munmap(at, 4096), 0);
  ASSERT_EQ(munmap(at + 4 * 4096, 4096), 0);
  Mapping m{};
  const auto address = reinterpret_cast<uintptr_t>(at);
  ASSERT_EQ(find_mapping(address + 2 * 4096 + 5, buffer, sizeof buffer, &m), Found::kYes);
  EXPECT_EQ(m.start, address + 4096);
  EXPECT_EQ(m.end, address + 4 * 4096);
  EXPECT_FALSE(m.writable);
  EXPECT_EQ(find_mapping(address, buffer, sizeof buffer, &m), Found::kNo);
  EXPECT_EQ(find_mapping(8, buffer, sizeof buffer, &m), Found::kNo);
  munmap(at + 4096, 3 * 4096);
}

TEST(BreakStart, is_where_the_kernel_says_the_heap_begins) {
  char buffer[4096];
  ASSERT_NE(sbrk(4096), reinterpret_cast<void*>(-1));
  const uintptr_t start = break_start(buffer, sizeof buffer);
  EXPECT_EQ(break_now(), reinterpret_cast<uintptr_t>(sbrk(0)));
  EXPECT_GT(break_now(), start);
  bool named = false;
  for (const auto& line : test::kernel_maps()) {
    if (line.name == "[heap]") named |= start >= line.start && start < line.end;
  }
  EXPECT_TRUE(named);
}

TEST(BreakStart, is_known_on_other_threads_too) {
  char buffer[4096];
  const uintptr_t here = break_start(buffer, sizeof buffer);
  uintptr_t there = 0;
  std::thread([&] {
    char own[1024];
    there = break_start(own, sizeof own);
  }).join();
  EXPECT_EQ(there, here);
}

TEST(Readable, tells_mapped_from_unmapped_and_protected) {
  auto* at = static_cast<char*>(mmap(nullptr, 2 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(at, MAP_FAILED);
  ASSERT_EQ(mprotect(at + 4096, 4096, PROT_NONE), 0);
  EXPECT_TRUE(readable(reinterpret_cast<uintptr_t>(at)));
  EXPECT_FALSE(readable(reinterpret_cast<uintptr_t>(at) + 4096));
  ASSERT_EQ(munmap(at, 2 * 4096), 0);
  EXPECT_FALSE(readable(reinterpret_cast<uintptr_t>(at)));
  EXPECT_FALSE(readable(0));
}

}  // namespace
}  // namespace traceaf::emitter::spans
