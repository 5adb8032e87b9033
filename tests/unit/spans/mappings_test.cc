// Mappings of the program: whatever it does to its address space, spans and the kernel's list cover the same pages.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>

#include "tests/unit/spans/replay.h"

namespace traceaf::emitter::spans {
namespace {

using wire::SpanSource;

constexpr size_t kPage = 4096;
// Far from where the kernel puts mappings by itself, so that only the test maps here; not in a sanitizer's shadow
// either.
char* const kWindow = reinterpret_cast<char*>(uintptr_t{0x7e9000000000});
constexpr size_t kWindowPages = 512;

uintptr_t address(const void* at) { return reinterpret_cast<uintptr_t>(at); }

class Mappings : public test::SpansTest {
 protected:
  void TearDown() override {
    take(kWindow, kWindowPages * kPage);
    SpansTest::TearDown();
  }
  // As the interposed calls do it: additions after, removals before the real call.
  void* map(void* at, size_t bytes, int protection = PROT_READ | PROT_WRITE, SpanSource source = SpanSource::kMmap) {
    void* got = mmap(at, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | (at != nullptr ? MAP_FIXED : 0), -1, 0);
    if (got != MAP_FAILED) mapping_added(sink_, address(got), bytes, source);
    return got;
  }
  void take(void* at, size_t bytes) {
    mapping_removed(sink_, address(at), bytes);
    ASSERT_EQ(munmap(at, bytes), 0);
  }
  void expect_agreement() {
    const uintptr_t lo = address(kWindow);
    const uintptr_t hi = lo + kWindowPages * kPage;
    uint64_t all = 0;
    for (const auto& line : test::kernel_maps()) {
      const uintptr_t from = std::max(line.start, lo);
      const uintptr_t to = std::min(line.end, hi);
      if (from >= to) continue;
      ASSERT_EQ(replay_.bytes_in(from, to), to - from) << std::hex << from << " " << to;
      all += to - from;
    }
    ASSERT_EQ(replay_.bytes_in(lo, hi), all);
  }
};

TEST_F(Mappings, fixed_mappings_over_parts_of_a_reservation_are_counted_once) {
  map(kWindow, 200 * kPage, PROT_NONE);
  expect_agreement();
  map(kWindow + 80 * kPage, 40 * kPage);
  expect_agreement();
  EXPECT_EQ(replay_.spans().size(), 3U);
  for (size_t page = 0; page < 200; page += 2) take(kWindow + page * kPage, kPage);
  expect_agreement();
  EXPECT_EQ(replay_.spans().size(), 100U);
  take(kWindow, 200 * kPage);
  expect_agreement();
  EXPECT_TRUE(replay_.spans().empty());
}

TEST_F(Mappings, sizes_that_are_no_multiple_of_the_page_are_rounded) {
  map(kWindow, 3 * kPage + 1);
  expect_agreement();
  take(kWindow + kPage, kPage + 1);
  expect_agreement();
  EXPECT_EQ(replay_.spans().size(), 2U);
}

TEST_F(Mappings, one_unmap_takes_several_spans_and_the_holes_between) {
  for (size_t i = 0; i < 8; ++i) map(kWindow + i * 10 * kPage, 5 * kPage);
  const size_t frees = replay_.frees();
  take(kWindow + 2 * kPage, 60 * kPage);
  expect_agreement();
  EXPECT_EQ(replay_.spans().size(), 3U);
  EXPECT_EQ(replay_.frees() - frees, 7U);
}

TEST_F(Mappings, what_the_kernel_refuses_changes_nothing) {
  map(kWindow, 4 * kPage);
  const size_t events = replay_.events();
  mapping_removed(sink_, address(kWindow) + 1, kPage);  // EINVAL
  ASSERT_NE(munmap(kWindow + 1, kPage), 0);
  mapping_removed(sink_, address(kWindow), 0);  // EINVAL
  ASSERT_NE(munmap(kWindow, 0), 0);
  mapping_removed(sink_, address(kWindow), ~size_t{0});  // wraps around
  ASSERT_NE(munmap(kWindow, ~size_t{0}), 0);
  mapping_added(sink_, address(kWindow), 0, SpanSource::kMmap);
  EXPECT_EQ(replay_.events(), events);
  expect_agreement();
}

TEST_F(Mappings, unmapping_a_hole_is_silent) {
  map(kWindow, kPage);
  const size_t events = replay_.events();
  take(kWindow + 8 * kPage, 4 * kPage);
  EXPECT_EQ(replay_.events(), events);
}

TEST_F(Mappings, advice_is_no_free) {
  map(kWindow, 64 * kPage);
  memset(kWindow, 1, 64 * kPage);
  const size_t events = replay_.events();
  ASSERT_EQ(madvise(kWindow, 32 * kPage, MADV_DONTNEED), 0);
  ASSERT_EQ(madvise(kWindow + 32 * kPage, 32 * kPage, MADV_FREE), 0);
  Sink& sink = sink_;
  reconcile(sink);
  EXPECT_EQ(replay_.events(), events);
  expect_agreement();
}

TEST_F(Mappings, remapping_moves_shrinks_and_grows) {
  map(kWindow, 10 * kPage);
  map(kWindow + 20 * kPage, 4 * kPage);
  // Grow in place.
  ASSERT_EQ(mremap(kWindow, 10 * kPage, 12 * kPage, 0), kWindow);
  mapping_removed(sink_, address(kWindow), 10 * kPage);
  mapping_added(sink_, address(kWindow), 12 * kPage, SpanSource::kMmap);
  expect_agreement();
  // Shrink.
  ASSERT_EQ(mremap(kWindow, 12 * kPage, 7 * kPage, 0), kWindow);
  mapping_removed(sink_, address(kWindow) + 7 * kPage, 5 * kPage);
  expect_agreement();
  // Onto another mapping.
  char* target = kWindow + 19 * kPage;
  ASSERT_EQ(mremap(kWindow, 7 * kPage, 7 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, target), target);
  mapping_removed(sink_, address(kWindow), 7 * kPage);
  mapping_added(sink_, address(target), 7 * kPage, SpanSource::kMmap);
  expect_agreement();
  EXPECT_EQ(replay_.spans().size(), 1U);
}

TEST_F(Mappings, files_keep_their_source) {
  const int fd = open("/proc/self/exe", O_RDONLY);
  ASSERT_GE(fd, 0);
  void* at = mmap(kWindow, 2 * kPage, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
  ASSERT_EQ(at, kWindow);
  mapping_added(sink_, address(at), 2 * kPage, SpanSource::kMmapFile);
  close(fd);
  expect_agreement();
  ASSERT_NE(replay_.holding(address(kWindow) + kPage), nullptr);
  EXPECT_EQ(replay_.holding(address(kWindow) + kPage)->source, SpanSource::kMmapFile);
}

TEST_F(Mappings, random_calls_agree_with_the_kernel_at_each_step) {
  std::mt19937 random(11);
  for (int i = 0; i < 1500; ++i) {
    const size_t page = random() % (kWindowPages - 1);
    const size_t pages = 1 + random() % std::min<size_t>(40, kWindowPages - page);
    char* at = kWindow + page * kPage;
    const size_t bytes = pages * kPage - random() % kPage;
    if (random() % 5 < 3) {
      map(at, bytes, random() % 4 == 0 ? PROT_NONE : PROT_READ | PROT_WRITE);
    } else {
      take(at, bytes);
    }
    if (i % 10 == 0) {
      ASSERT_NO_FATAL_FAILURE(expect_agreement());
    }
    if (i % 100 == 0) {
      const size_t events = replay_.events();
      reconcile(sink_);
      ASSERT_EQ(replay_.events(), events) << "nothing went away unseen";
    }
  }
  expect_agreement();
}

TEST_F(Mappings, break_is_followed_both_ways) {
  break_changed(sink_);
  const size_t before = replay_.events();
  break_changed(sink_);
  EXPECT_EQ(replay_.events(), before);
  ASSERT_NE(sbrk(3 * kPage + 100), reinterpret_cast<void*>(-1));
  break_changed(sink_);
  const uintptr_t end = (address(sbrk(0)) + kPage - 1) / kPage * kPage;
  ASSERT_NE(replay_.holding(end - 1), nullptr);
  EXPECT_EQ(replay_.holding(end - 1)->source, SpanSource::kBrk);
  EXPECT_EQ(replay_.holding(end), nullptr);
  EXPECT_EQ(replay_.count(SpanSource::kBrk), 1U);
  ASSERT_NE(sbrk(-2 * static_cast<long>(kPage)), reinterpret_cast<void*>(-1));
  break_changed(sink_);
  EXPECT_EQ(replay_.holding(end - 1), nullptr);
  ASSERT_NE(replay_.holding(end - 2 * kPage - 1), nullptr);
  ASSERT_NE(sbrk(-static_cast<long>(kPage) - 100), reinterpret_cast<void*>(-1));
  break_changed(sink_);
}

// ---- any allocator: the mapping around the object -----------------------------------------------------------------

TEST_F(Mappings, object_of_an_unknown_allocator_brings_its_mapping) {
  ASSERT_EQ(mmap(kWindow, 16 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), kWindow);
  object_born(cache_, sink_, address(kWindow) + 5000, 10);
  ASSERT_EQ(replay_.spans().size(), 1U);
  EXPECT_TRUE(test::same(replay_.spans().begin()->second,
                         {address(kWindow), 16 * kPage, wire::kSpanKindOther, 0, SpanSource::kAllocator, false}));
  object_born(cache_, sink_, address(kWindow) + 9000, 10);
  Cache other{};
  object_born(other, sink_, address(kWindow) + 9000, 10);
  EXPECT_EQ(replay_.events(), 1U);
  expect_agreement();
}

TEST_F(Mappings, mapping_of_an_unknown_allocator_grows_at_both_ends) {
  const auto raw = [](char* at, size_t bytes) {
    ASSERT_EQ(mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), at);
  };
  raw(kWindow + 16 * kPage, 4 * kPage);
  object_born(cache_, sink_, address(kWindow) + 16 * kPage, 1);
  raw(kWindow + 20 * kPage, 4 * kPage);
  object_born(cache_, sink_, address(kWindow) + 21 * kPage, 1);
  raw(kWindow + 12 * kPage, 4 * kPage);
  object_born(cache_, sink_, address(kWindow) + 12 * kPage, 1);
  ASSERT_EQ(replay_.spans().size(), 1U);
  EXPECT_EQ(replay_.spans().begin()->second.bytes, 12 * kPage);
  expect_agreement();
}

TEST_F(Mappings, object_that_reaches_out_of_the_known_part_of_its_mapping_makes_the_span_grow) {
  const auto raw = [](char* at, size_t bytes) {
    ASSERT_EQ(mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), at);
  };
  raw(kWindow, 4 * kPage);
  object_born(cache_, sink_, address(kWindow), 1);
  raw(kWindow + 4 * kPage, 4 * kPage);
  object_born(cache_, sink_, address(kWindow) + 3 * kPage, 2 * kPage);
  ASSERT_EQ(replay_.spans().size(), 1U);
  EXPECT_EQ(replay_.spans().begin()->second.bytes, 8 * kPage);
  const size_t events = replay_.events();
  object_born(cache_, sink_, address(kWindow) + 7 * kPage, 20 * kPage);  // a size that cannot be: no harm
  EXPECT_EQ(replay_.events(), events);
}

TEST_F(Mappings, mapping_of_an_unknown_allocator_leaves_known_neighbours_alone) {
  map(kWindow, 4 * kPage);
  ASSERT_EQ(
      mmap(kWindow + 4 * kPage, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
      kWindow + 4 * kPage);
  object_born(cache_, sink_, address(kWindow) + 5 * kPage, 1);  // the kernel has made one mapping of the two
  ASSERT_EQ(replay_.spans().size(), 2U);
  EXPECT_EQ(replay_.holding(address(kWindow))->source, SpanSource::kMmap);
  EXPECT_EQ(replay_.holding(address(kWindow) + 5 * kPage)->source, SpanSource::kAllocator);
  expect_agreement();
}

TEST_F(Mappings, cache_forgets_a_range_that_went_away) {
  map(kWindow, 4 * kPage);
  object_born(cache_, sink_, address(kWindow) + 8, 1);
  take(kWindow, 4 * kPage);
  ASSERT_EQ(mmap(kWindow, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), kWindow);
  object_born(cache_, sink_, address(kWindow) + 8, 1);
  ASSERT_NE(replay_.holding(address(kWindow)), nullptr);
  EXPECT_EQ(replay_.holding(address(kWindow))->source, SpanSource::kAllocator);
}

TEST_F(Mappings, cache_serves_more_ranges_than_it_holds) {
  for (size_t i = 0; i < 20; ++i) map(kWindow + i * 4 * kPage, 2 * kPage);
  const size_t events = replay_.events();
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < 20; ++i) object_born(cache_, sink_, address(kWindow) + i * 4 * kPage + 16, 1);
  }
  EXPECT_EQ(replay_.events(), events);
}

TEST_F(Mappings, object_nowhere_is_no_harm) {
  object_born(cache_, sink_, 0, 1);
  object_born(cache_, sink_, address(kWindow), 1);
  object_dying(cache_, sink_, address(kWindow));
  EXPECT_EQ(before_move(address(kWindow)), 0U);
  EXPECT_EQ(replay_.events(), 0U);
}

}  // namespace
}  // namespace traceaf::emitter::spans
