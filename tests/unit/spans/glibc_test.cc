// glibc's own malloc, in this process: where its blocks lie by our reckoning and by the kernel's.
#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "tests/unit/spans/replay.h"

namespace traceaf::emitter::spans {
namespace {

using wire::SpanSource;

uintptr_t address(const void* at) { return reinterpret_cast<uintptr_t>(at); }

class Glibc : public test::SpansTest {
 protected:
  void SetUp() override {
    SpansTest::SetUp();
    auto* volatile real = &malloc;
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(real), &info) == 0 || strstr(info.dli_fname, "libc.so.6") == nullptr) {
      GTEST_SKIP() << "malloc is not glibc's here";
    }
    set_allocator({reinterpret_cast<void*>(real), info.dli_fname, nullptr, &malloc_usable_size});
    mallopt(M_MMAP_THRESHOLD, 128 << 10);  // fixed, so that sizes say how a block is obtained
    // Free heap space of earlier tests would serve large blocks: it is taken first.
    soaked_.reserve(4096);
    for (;;) {
      soaked_.push_back(malloc(140000));
      if (header(soaked_.back()) & 2) break;
    }
  }
  void TearDown() override {
    for (void* p : soaked_) free(p);
    SpansTest::TearDown();
  }
  static uint64_t header(const void* p) {
    uint64_t word = 0;
    memcpy(&word, reinterpret_cast<const void*>(address(p) - 8), sizeof word);
    return word;
  }
  char* birth(char* p, size_t size) {
    object_born(cache_, sink_, address(p), size);
    return p;
  }
  char* get(size_t size) { return birth(static_cast<char*>(malloc(size)), size); }
  void drop(void* p) {
    object_dying(cache_, sink_, address(p));
    free(p);
  }
  char* move(char* p, size_t size) {
    const uint64_t remembered = before_move(address(p));
    const uintptr_t old = address(p);
    auto* to = static_cast<char*>(realloc(p, size));
    after_move(cache_, sink_, remembered, old, address(to), size);
    return to;
  }
  void expect_holds(const void* p, size_t size, SpanSource source) {
    const Span* span = replay_.holding(address(p));
    ASSERT_NE(span, nullptr);
    EXPECT_EQ(span->source, source) << test::text(*span);
    EXPECT_LE(address(p) + size, span->base + span->bytes);
    EXPECT_EQ(test::kernel_bytes(span->base, span->base + span->bytes), span->bytes) << test::text(*span);
  }
  std::vector<void*> soaked_;
};

TEST_F(Glibc, small_block_lies_in_the_whole_brk_heap) {
  char* p = get(40);
  expect_holds(p, 40, SpanSource::kBrk);
  const Span* span = replay_.holding(address(p));
  for (const auto& line : test::kernel_maps()) {
    if (line.name != "[heap]") continue;
    EXPECT_EQ(span->base, line.start);
    EXPECT_EQ(span->base + span->bytes, line.end);
  }
  const size_t events = replay_.events();
  char* q = get(41);
  drop(q);
  drop(p);
  EXPECT_EQ(replay_.events(), events);
}

TEST_F(Glibc, heap_is_one_span_while_it_grows) {
  std::vector<char*> blocks;
  for (int i = 0; i < 400; ++i) blocks.push_back(get(60000));
  for (char* p : blocks) expect_holds(p, 60000, SpanSource::kBrk);
  EXPECT_EQ(replay_.count(SpanSource::kBrk), 1U);
  for (char* p : blocks) drop(p);
}

TEST_F(Glibc, large_block_has_a_span_from_birth_to_death) {
  for (const size_t size : {size_t{200000}, size_t{1} << 20, (size_t{3} << 20) + 5}) {
    char* p = get(size);
    expect_holds(p, malloc_usable_size(p), SpanSource::kMmapChunk);
    const Span span = *replay_.holding(address(p));
    EXPECT_EQ(span.base, address(p) - 16);
    EXPECT_LT(span.bytes, size + 3 * 4096);
    object_dying(cache_, sink_, address(p));
    EXPECT_EQ(replay_.holding(address(p)), nullptr);
    EXPECT_EQ(test::kernel_bytes(span.base, span.base + span.bytes), span.bytes);
    free(p);
    EXPECT_EQ(test::kernel_bytes(span.base, span.base + span.bytes), 0U);
  }
}

TEST_F(Glibc, aligned_large_block_has_exactly_its_mapping) {
  for (const size_t alignment : {size_t{64}, size_t{4096}, size_t{1} << 16, size_t{1} << 20}) {
    auto* p = birth(static_cast<char*>(memalign(alignment, 3 << 20)), 3 << 20);
    ASSERT_EQ(address(p) % alignment, 0U);
    expect_holds(p, malloc_usable_size(p), SpanSource::kMmapChunk);
    const Span span = *replay_.holding(address(p));
    const uintptr_t lo = span.base - (4 << 20);
    const uintptr_t hi = span.base + span.bytes + (4 << 20);
    const uint64_t mapped = test::kernel_bytes(lo, hi);
    drop(p);
    EXPECT_EQ(replay_.count(SpanSource::kMmapChunk), 0U);
    EXPECT_EQ(test::kernel_bytes(span.base, span.base + span.bytes), 0U) << "the whole span was the block's";
    EXPECT_EQ(mapped - test::kernel_bytes(lo, hi), span.bytes) << "the whole mapping was in the span";
  }
}

TEST_F(Glibc, small_aligned_and_odd_sizes_stay_in_the_heap) {
  for (size_t alignment = 8; alignment <= 8192; alignment *= 2) {
    for (const size_t size : {size_t{0}, size_t{1}, size_t{23}, size_t{25}, size_t{4097}}) {
      auto* p = birth(static_cast<char*>(memalign(alignment, size)), size);
      expect_holds(p, size, (header(p) & 4) != 0 ? SpanSource::kArena : SpanSource::kBrk);
      drop(p);
    }
  }
  EXPECT_LE(replay_.spans().size(), 2U);
}

TEST_F(Glibc, realloc_follows_the_block_through_all_kinds) {
  char* p = get(2000);  // more than a thread's own cache of blocks holds
  p = move(p, 300000);  // heap -> mapping
  expect_holds(p, 300000, SpanSource::kMmapChunk);
  p = move(p, 3000000);  // mremap, larger
  expect_holds(p, 3000000, SpanSource::kMmapChunk);
  EXPECT_EQ(replay_.count(SpanSource::kMmapChunk), 1U);
  p = move(p, 500000);  // mremap, smaller
  expect_holds(p, 500000, SpanSource::kMmapChunk);
  EXPECT_LT(replay_.holding(address(p))->bytes, 510000U);
  const size_t events = replay_.events();
  p = move(p, 500001);  // same pages
  EXPECT_EQ(replay_.events(), events);
  p = move(p, 100);  // mapping -> heap, or the mapping shrinks
  ASSERT_NE(replay_.holding(address(p)), nullptr);
  EXPECT_LE(replay_.count(SpanSource::kMmapChunk), 1U);
  drop(p);
  EXPECT_EQ(replay_.count(SpanSource::kMmapChunk), 0U);
}

TEST_F(Glibc, move_does_not_end_a_span_that_another_thread_put_there_meanwhile) {
  char* p = get(300000);
  const Span span = *replay_.holding(address(p));
  const uint64_t remembered = before_move(address(p));
  ASSERT_NE(remembered, 0U);
  // The real realloc has moved the block away, and another thread's block gets the same range before after_move() runs.
  mapping_added(sink_, span.base, span.bytes, SpanSource::kMmapChunk);
  char* elsewhere = get(300000);
  after_move(cache_, sink_, remembered, address(p), address(elsewhere), 300000);
  ASSERT_NE(replay_.holding(span.base), nullptr);
  EXPECT_EQ(replay_.holding(span.base)->bytes, span.bytes);
  mapping_removed(sink_, span.base, span.bytes);
  free(p);
  drop(elsewhere);
}

TEST_F(Glibc, move_that_only_freed_ends_the_span) {
  char* p = get(300000);
  const uint64_t remembered = before_move(address(p));
  const uintptr_t old = address(p);
  free(p);
  after_move(cache_, sink_, remembered, old, 0, 0);
  EXPECT_EQ(replay_.count(SpanSource::kMmapChunk), 0U);
}

TEST_F(Glibc, block_born_twice_is_one_span) {
  char* p = get(300000);
  const size_t events = replay_.events();
  birth(p, 300000);
  EXPECT_EQ(replay_.events(), events);
  drop(p);
}

TEST_F(Glibc, threads_have_arena_heaps_that_grow_in_place) {
  std::thread([&] {
    Cache own{};
    std::vector<char*> blocks;
    for (int i = 0; i < 300; ++i) {
      auto* p = static_cast<char*>(malloc(50000));
      object_born(own, sink_, address(p), 50000);
      blocks.push_back(p);
      if (i % 50 == 0) expect_holds(p, 50000, SpanSource::kArena);
    }
    std::set<uintptr_t> heaps;
    for (char* p : blocks) heaps.insert(address(p) & ~((uintptr_t{64} << 20) - 1));
    EXPECT_EQ(replay_.count(SpanSource::kArena), heaps.size());
    for (char* p : blocks) {
      const Span* span = replay_.holding(address(p));
      ASSERT_NE(span, nullptr);
      ASSERT_EQ(heaps.count(span->base), 1U);
      ASSERT_LE(address(p) + 50000, span->base + span->bytes);
      object_dying(own, sink_, address(p));
      free(p);
    }
    const size_t events = replay_.events();
    auto* again = static_cast<char*>(malloc(20));
    object_born(own, sink_, address(again), 20);
    EXPECT_EQ(replay_.events(), events);
    free(again);
  }).join();
}

TEST_F(Glibc, arena_heap_that_shrank_unseen_shrinks_at_the_next_reconciliation) {
  std::vector<char*> blocks;
  blocks.reserve(300);
  std::thread([&] {
    Cache own{};
    for (int i = 0; i < 300; ++i) {
      blocks.push_back(static_cast<char*>(malloc(50000)));
      object_born(own, sink_, address(blocks.back()), 50000);
    }
    const Span before = *replay_.holding(address(blocks[0]));
    for (; !blocks.empty(); blocks.pop_back()) free(blocks.back());
    reconcile(sink_);
    const Span* after = replay_.holding(before.base);
    ASSERT_NE(after, nullptr);
    uint64_t heap_size = 0;
    memcpy(&heap_size, reinterpret_cast<const char*>(before.base) + 16, sizeof heap_size);
    EXPECT_EQ(after->bytes, heap_size);
    if (heap_size == before.bytes) GTEST_SKIP() << "glibc kept all of the heap";
    EXPECT_EQ(replay_.holding(before.base + before.bytes - 1), nullptr);
    // The cached range is out of date now.
    for (int i = 0; i < 300; ++i) {
      blocks.push_back(static_cast<char*>(malloc(50000)));
      object_born(own, sink_, address(blocks.back()), 50000);
      expect_holds(blocks.back(), 50000, SpanSource::kArena);
    }
    for (char* p : blocks) free(p);
  }).join();
}

TEST_F(Glibc, arena_larger_than_one_heap_has_several) {
  std::vector<char*> blocks;
  blocks.reserve(1400);   // outside the arena, so that it empties
  mallopt(M_TOP_PAD, 0);  // glibc keeps an empty heap when the one before has less room than this
  std::thread([&] {
    Cache own{};
    for (int i = 0; i < 1400; ++i) {  // 140 MB
      auto* p = static_cast<char*>(malloc(100000));
      object_born(own, sink_, address(p), 100000);
      blocks.push_back(p);
    }
    for (char* p : blocks) {
      const Span* span = replay_.holding(address(p));
      ASSERT_NE(span, nullptr);
      ASSERT_EQ(span->source, SpanSource::kArena);
      ASSERT_LE(address(p) + 100000, span->base + span->bytes);
    }
    EXPECT_GE(replay_.count(SpanSource::kArena), 3U);
    for (; !blocks.empty(); blocks.pop_back()) free(blocks.back());  // backwards, so that heaps empty one by one
  }).join();
  mallopt(M_TOP_PAD, 128 << 10);
  // Some heaps went back to the kernel unseen, others shrank: which is glibc's affair, but its word and ours agree.
  const size_t before = replay_.count(SpanSource::kArena);
  const size_t events = replay_.events();
  reconcile(sink_);
  EXPECT_LT(replay_.count(SpanSource::kArena), before);
  EXPECT_GT(replay_.events(), events);
  for (const auto& [base, span] : replay_.spans()) {
    ASSERT_EQ(test::kernel_bytes(base, base + span.bytes), span.bytes);
    if (span.source != SpanSource::kArena) continue;
    uint64_t heap_size = 0;
    memcpy(&heap_size, reinterpret_cast<const char*>(base) + 16, sizeof heap_size);
    EXPECT_EQ(span.bytes, heap_size);
  }
}

TEST_F(Glibc, trimmed_heap_shrinks_at_the_next_reconciliation) {
  std::vector<char*> blocks;
  for (int i = 0; i < 200; ++i) blocks.push_back(get(100000));
  const uintptr_t before = address(sbrk(0));
  for (char* p : blocks) drop(p);
  malloc_trim(0);
  ASSERT_LT(address(sbrk(0)), before);
  reconcile(sink_);
  const Span* span = replay_.holding(address(sbrk(0)) - 1);
  ASSERT_NE(span, nullptr);
  EXPECT_EQ(span->base + span->bytes, (address(sbrk(0)) + 4095) / 4096 * 4096);
  EXPECT_EQ(replay_.count(SpanSource::kBrk), 1U);
  char* p = get(100000);
  expect_holds(p, 100000, SpanSource::kBrk);
  drop(p);
}

// In a child, since the main arena never goes back to brk.
TEST_F(Glibc, main_arena_beyond_a_blocked_break_is_found_in_the_kernels_list) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const uintptr_t end = (address(sbrk(0)) + 4095) / 4096 * 4096;
    mmap(reinterpret_cast<void*>(end), 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    size_t outside = 0;
    for (int i = 0; i < 4000 && outside <= 100; ++i) {
      char* p = get(90000);
      const Span* span = replay_.holding(address(p));
      if (span == nullptr || address(p) + 90000 > span->base + span->bytes) _exit(2);
      if (span->source == SpanSource::kAllocator) {
        ++outside;
        if (address(p) < end) _exit(3);
      } else if (span->source != SpanSource::kBrk) {
        _exit(4);
      }
    }
    for (const auto& [base, span] : replay_.spans()) {
      if (test::kernel_bytes(base, base + span.bytes) != span.bytes) _exit(5);
    }
    replay_.expect_consistent();
    _exit(outside > 100 && !HasFailure() ? 0 : 6);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(Glibc, remains_of_an_unseen_unmap_give_way_to_the_heap) {
  // The program maps where an arena heap will be, unmaps by a raw system call, and glibc gets the range.
  std::thread([&] {
    Cache own{};
    auto* p = static_cast<char*>(malloc(100));
    const uintptr_t heap = address(p) & ~((uintptr_t{64} << 20) - 1);
    mapping_added(sink_, heap, 1 << 20, SpanSource::kMmap);
    object_born(own, sink_, address(p), 100);
    expect_holds(p, 100, SpanSource::kArena);
    free(p);
  }).join();
}

TEST_F(Glibc, other_libraries_and_mallctl_mean_another_allocator) {
  char* p = static_cast<char*>(malloc(300000));
  const NextAllocator others[] = {{nullptr, "/usr/lib/libc_malloc_debug.so.0", nullptr, nullptr},
                                  {nullptr, "/opt/app/libc.so.6/app", nullptr, nullptr},
                                  {nullptr, nullptr, nullptr, nullptr},
                                  {nullptr, "libc.so.60", nullptr, nullptr}};
  for (const auto& other : others) {
    reset();
    replay_ = {};
    sink_ = replay_.sink();
    set_allocator(other);
    object_born(cache_, sink_, address(p), 300000);
    ASSERT_NE(replay_.holding(address(p)), nullptr);
    EXPECT_EQ(replay_.holding(address(p))->source, SpanSource::kAllocator);
    const size_t events = replay_.events();
    object_dying(cache_, sink_, address(p));
    EXPECT_EQ(replay_.events(), events);
  }
  free(p);
}

}  // namespace
}  // namespace traceaf::emitter::spans
