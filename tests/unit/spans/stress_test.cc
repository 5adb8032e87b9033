// Many threads at once: the events still add up at every step, and what is left is what is there.
#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "tests/unit/spans/replay.h"

namespace traceaf::emitter::spans {
namespace {

using wire::SpanSource;

constexpr int kThreads = 4;
constexpr size_t kPage = 4096;

uintptr_t address(const void* at) { return reinterpret_cast<uintptr_t>(at); }

class Stress : public test::SpansTest {
 protected:
  // Runs `body` on several threads while another reconciles without pause.
  template <typename Body>
  void run(Body body) {
    std::atomic<bool> stop{false};
    std::thread flusher([&] {
      while (!stop) reconcile(sink_);
    });
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { body(t); });
    for (auto& t : threads) t.join();
    stop = true;
    flusher.join();
  }
};

TEST_F(Stress, mappings_of_many_threads_end_as_the_kernel_has_them) {
  const auto window = [](int t) { return reinterpret_cast<char*>(0x7e9000000000 + (uintptr_t{1} << 32) * t); };
  run([&](int t) {
    std::mt19937 random(static_cast<unsigned>(t));
    Cache cache{};
    char* base = window(t);
    for (int i = 0; i < 4000; ++i) {
      char* at = base + random() % 64 * kPage;
      const size_t bytes = (1 + random() % 8) * kPage;
      if (random() % 2 == 0) {
        void* got = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        ASSERT_EQ(got, at);
        mapping_added(sink_, address(at), bytes, SpanSource::kMmap);
        object_born(cache, sink_, address(at) + 64, 1);
      } else {
        mapping_removed(sink_, address(at), bytes);
        ASSERT_EQ(munmap(at, bytes), 0);
      }
    }
  });
  replay_.expect_consistent();
  for (int t = 0; t < kThreads; ++t) {
    const uintptr_t lo = address(window(t));
    const uintptr_t hi = lo + 128 * kPage;
    uint64_t both = 0;
    for (const auto& line : test::kernel_maps()) {
      const uintptr_t from = std::max(line.start, lo);
      const uintptr_t to = std::min(line.end, hi);
      if (from < to) both += replay_.bytes_in(from, to);
    }
    EXPECT_EQ(both, replay_.bytes_in(lo, hi));
    EXPECT_EQ(both, test::kernel_bytes(lo, hi));
    mapping_removed(sink_, lo, hi - lo);
    munmap(window(t), hi - lo);
  }
}

TEST_F(Stress, blocks_that_change_threads_leave_no_span_behind) {
  auto* volatile real = &malloc;
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(real), &info) == 0 || strstr(info.dli_fname, "libc.so.6") == nullptr) {
    GTEST_SKIP() << "malloc is not glibc's here";
  }
  set_allocator({reinterpret_cast<void*>(real), info.dli_fname, nullptr, &malloc_usable_size});
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  std::vector<std::atomic<void*>> shared(64);
  run([&](int t) {
    std::mt19937 random(static_cast<unsigned>(t) + 100);
    Cache cache{};
    for (int i = 0; i < 30000; ++i) {
      const size_t size = random() % 16 == 0 ? 100000 + random() % 400000 : random() % 5000;
      auto* p = static_cast<char*>(malloc(size));
      object_born(cache, sink_, address(p), size);
      if (random() % 4 == 0) {
        const size_t other = random() % 8 == 0 ? 100000 + random() % 400000 : 1 + random() % 5000;
        const uint64_t remembered = before_move(address(p));
        const uintptr_t old = address(p);
        p = static_cast<char*>(realloc(p, other));
        after_move(cache, sink_, remembered, old, address(p), other);
      }
      void* given = shared[random() % shared.size()].exchange(p);
      if (given == nullptr) continue;
      object_dying(cache, sink_, address(given));
      free(given);
    }
  });
  for (auto& slot : shared) {
    void* p = slot.load();
    if (p == nullptr) continue;
    EXPECT_NE(replay_.holding(address(p)), nullptr);
    object_dying(cache_, sink_, address(p));
    free(p);
  }
  replay_.expect_consistent();
  EXPECT_EQ(replay_.count(SpanSource::kMmapChunk), 0U);
  EXPECT_GE(replay_.count(SpanSource::kArena), 1U);
}

}  // namespace
}  // namespace traceaf::emitter::spans
