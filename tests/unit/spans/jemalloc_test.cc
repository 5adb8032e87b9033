// jemalloc as the next allocator, in a program linked to it: computed slabs against jemalloc's own record of them.
// Run under several MALLOC_CONF; where slabs cannot be computed the tests expect mappings instead.
#include <dlfcn.h>
#include <jemalloc/jemalloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "tests/unit/spans/replay.h"

namespace traceaf::emitter::spans {
namespace {

using wire::SpanSource;

uintptr_t address(const void* at) { return reinterpret_cast<uintptr_t>(at); }

template <typename T>
T ask(const std::string& name) {
  T value{};
  size_t bytes = sizeof value;
  EXPECT_EQ(mallctl(name.c_str(), &value, &bytes, nullptr, 0), 0) << name;
  return value;
}

size_t usable(void* p) { return malloc_usable_size(p); }

struct Class {
  size_t size, slab;
};
std::vector<Class> classes() {
  std::vector<Class> all;
  const auto bins = ask<unsigned>("arenas.nbins");
  for (unsigned i = 0; i < bins; ++i) {
    const std::string bin = "arenas.bin." + std::to_string(i);
    all.push_back({ask<size_t>(bin + ".size"), ask<size_t>(bin + ".slab_size")});
  }
  return all;
}

// Whether this run's configuration allows the arithmetic, found without it: every page of a slab but the first must
// fail.
bool computable() {
  if (ask<bool>("opt.prof")) return false;
  for (const Class& c : classes()) {
    size_t length = 4096;
    while (length % c.size != 0) length += 4096;
    if (length != c.slab) return false;
  }
  return true;
}

int g_mallctl_calls = 0;
int counting_mallctl(const char* name, void* old, size_t* bytes, void* fresh, size_t fresh_bytes) {
  ++g_mallctl_calls;
  return mallctl(name, old, bytes, fresh, fresh_bytes);
}

class Jemalloc : public test::SpansTest {
 protected:
  void SetUp() override {
    SpansTest::SetUp();
    g_mallctl_calls = 0;
    set_allocator({reinterpret_cast<void*>(&malloc), "libjemalloc.so.2", &counting_mallctl, &usable});
    computable_ = computable();
  }
  char* birth(void* p, size_t size) {
    object_born(cache_, sink_, address(p), size);
    return static_cast<char*>(p);
  }
  char* get(size_t size) { return birth(malloc(size), size); }
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
  bool computable_ = false;
};

TEST_F(Jemalloc, size_classes_are_asked_for_once_at_the_first_object) {
  EXPECT_EQ(g_mallctl_calls, 0);
  char* p = get(10);
  const int calls = g_mallctl_calls;
  EXPECT_GT(calls, 0);
  char* q = get(10);
  EXPECT_EQ(g_mallctl_calls, calls);
  drop(p);
  drop(q);
}

// The bin's current slab is the one that an uncached allocation has just come from.
TEST_F(Jemalloc, every_slab_base_is_the_one_that_jemalloc_has) {
  if (!computable_) GTEST_SKIP() << "no arithmetic under this configuration";
  bool off = false;
  ASSERT_EQ(mallctl("thread.tcache.enabled", nullptr, nullptr, &off, sizeof off), 0);
  struct Answer {
    void* slab;
    size_t free_regions, regions, size, bin_free, bin_regions;
  };
  size_t checked = 0;
  for (size_t i = 0; i < classes().size(); ++i) {
    const Class c = classes()[i];
    std::vector<char*> blocks;
    blocks.reserve(600);
    for (int n = 0; n < 600; ++n) {
      void* p = malloc(c.size);
      Answer answer{};
      size_t bytes = sizeof answer;
      ASSERT_EQ(mallctl("experimental.utilization.query", &answer, &bytes, &p, sizeof p), 0);
      birth(p, c.size);
      const Span* span = replay_.holding(address(p));
      ASSERT_NE(span, nullptr);
      ASSERT_EQ(span->base, address(answer.slab)) << "class " << c.size;
      ASSERT_EQ(span->bytes, answer.size);
      ASSERT_EQ(span->bytes, c.slab);
      ASSERT_EQ(span->kind_class, (i + 1) << 2);
      ASSERT_EQ(span->object_size, c.size);
      ASSERT_EQ(span->source, SpanSource::kSlab);
      ASSERT_TRUE(span->inferred);
      blocks.push_back(static_cast<char*>(p));
      ++checked;
    }
    for (char* p : blocks) drop(p);
  }
  EXPECT_EQ(checked, classes().size() * 600);
  bool on = true;
  mallctl("thread.tcache.enabled", nullptr, nullptr, &on, sizeof on);
}

TEST_F(Jemalloc, known_slab_is_silent) {
  if (!computable_) GTEST_SKIP();
  std::vector<char*> blocks;
  for (int i = 0; i < 10000; ++i) blocks.push_back(get(48));
  const size_t events = replay_.events();
  for (char* p : blocks) birth(p, 48);
  EXPECT_EQ(replay_.events(), events);
  EXPECT_LE(replay_.spans().size(), 10000U * 48 / 12288 + 40);
  for (char* p : blocks) drop(p);
  EXPECT_EQ(replay_.events(), events) << "a slab ends only when something else appears in its place";
}

TEST_F(Jemalloc, large_object_has_its_extent_from_birth_to_death) {
  if (!computable_) GTEST_SKIP();
  for (const size_t size : {size_t{16384}, size_t{100000}, size_t{1} << 20, size_t{5000000}}) {
    for (const size_t alignment : {size_t{16}, size_t{4096}, size_t{65536}}) {
      char* p = birth(aligned_alloc(alignment, size), size);
      const Span* span = replay_.holding(address(p));
      ASSERT_NE(span, nullptr);
      EXPECT_EQ(span->source, SpanSource::kLarge);
      EXPECT_TRUE(span->inferred);
      EXPECT_EQ(span->kind_class, wire::kSpanKindOther);
      struct {
        void* slab;
        size_t rest[5];
      } answer{};
      size_t bytes = sizeof answer;
      void* q = p;
      ASSERT_EQ(mallctl("experimental.utilization.query", &answer, &bytes, &q, sizeof q), 0);
      EXPECT_EQ(span->bytes, answer.rest[2]) << size << " " << alignment;
      EXPECT_LE(address(p) + usable(p), span->base + span->bytes);
      EXPECT_LT(address(p) - span->base, 4096U);
      drop(p);
      EXPECT_EQ(replay_.holding(address(p)), nullptr);
    }
  }
}

TEST_F(Jemalloc, realloc_follows_the_block) {
  if (!computable_) GTEST_SKIP();
  char* p = get(100);
  size_t size = 100;
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    size = 1 + (random() % 3 == 0 ? random() % 3000000 : random() % 20000);
    p = move(p, size);
    const Span* span = replay_.holding(address(p));
    ASSERT_NE(span, nullptr);
    ASSERT_LE(address(p) + usable(p), span->base + span->bytes);
    ASSERT_EQ(span->source == SpanSource::kLarge, usable(p) > 14336);
    ASSERT_LE(replay_.count(SpanSource::kLarge), 1U);
  }
  drop(p);
  EXPECT_EQ(replay_.count(SpanSource::kLarge), 0U);
}

// Random use with reuse of freed slabs by other classes: each live object lies in a slab of its class, on a boundary.
TEST_F(Jemalloc, live_objects_agree_with_their_slabs_through_reuse) {
  if (!computable_) GTEST_SKIP();
  std::mt19937 random(17);
  std::vector<char*> live(3000, nullptr);
  for (int phase = 0; phase < 12; ++phase) {
    const size_t most = phase % 3 == 0 ? 40000 : phase % 3 == 1 ? 300 : 14336;
    for (int i = 0; i < 6000; ++i) {
      char*& p = live[random() % live.size()];
      if (p != nullptr) drop(p);
      p = get(1 + random() % most);
    }
    for (char* p : live) {
      if (p == nullptr) continue;
      const Span* span = replay_.holding(address(p));
      ASSERT_NE(span, nullptr);
      if (usable(p) > 14336) {
        ASSERT_EQ(span->source, SpanSource::kLarge);
        continue;
      }
      ASSERT_EQ(span->source, SpanSource::kSlab);
      ASSERT_EQ(span->object_size, usable(p));
      ASSERT_EQ((address(p) - span->base) % span->object_size, 0U);
    }
  }
  EXPECT_GT(replay_.frees(), 0U);
  for (char*& p : live) {
    if (p != nullptr) drop(p);
    p = nullptr;
  }
  EXPECT_EQ(replay_.count(SpanSource::kLarge), 0U);
}

TEST_F(Jemalloc, raw_material_is_no_span_but_ends_spans) {
  if (!computable_) GTEST_SKIP();
  char* p = get(64);
  const Span span = *replay_.holding(address(p));
  mapping_added(sink_, span.base - (1 << 20), 1 << 19, SpanSource::kAllocator);
  EXPECT_EQ(replay_.spans().count(span.base - (1 << 20)), 0U);
  mapping_removed(sink_, span.base, 4096);  // a slab has no parts
  EXPECT_EQ(replay_.holding(address(p)), nullptr);
  birth(p, 64);
  EXPECT_NE(replay_.holding(address(p)), nullptr);
  drop(p);
}

TEST_F(Jemalloc, falls_back_to_mappings_when_slabs_cannot_be_computed) {
  if (computable_) GTEST_SKIP() << "they can, in this configuration";
  std::vector<char*> blocks;
  for (const size_t size : {size_t{16}, size_t{500}, size_t{9000}, size_t{100000}}) {
    char* p = get(size);
    const Span* span = replay_.holding(address(p));
    ASSERT_NE(span, nullptr);
    EXPECT_EQ(span->source, SpanSource::kAllocator);
    EXPECT_EQ(span->kind_class, wire::kSpanKindOther);
    EXPECT_FALSE(span->inferred);
    EXPECT_EQ(test::kernel_bytes(span->base, span->base + span->bytes), span->bytes);
    blocks.push_back(p);
  }
  for (char* p : blocks) drop(p);
}

// mallctl may get memory, and the hook of that comes back here on the same thread.
Cache g_inner_cache{};
Sink* g_inner_sink = nullptr;
void* g_inner_block = nullptr;
int reentering_mallctl(const char* name, void* old, size_t* bytes, void* fresh, size_t fresh_bytes) {
  errno = 99;
  object_born(g_inner_cache, *g_inner_sink, address(g_inner_block), 100);
  object_dying(g_inner_cache, *g_inner_sink, address(g_inner_block));
  EXPECT_EQ(before_move(address(g_inner_block)), 0U);
  return mallctl(name, old, bytes, fresh, fresh_bytes);
}

TEST_F(Jemalloc, objects_born_while_the_classes_are_read_do_no_harm) {
  g_inner_sink = &sink_;
  g_inner_block = malloc(100);
  set_allocator({nullptr, "libjemalloc.so.2", &reentering_mallctl, &usable});
  errno = 7;
  char* p = get(100);
  EXPECT_EQ(errno, 7);
  EXPECT_NE(replay_.holding(address(p)), nullptr);
  drop(p);
  free(g_inner_block);
}

TEST_F(Jemalloc, many_threads_and_a_reconciler) {
  if (!computable_) GTEST_SKIP();
  std::atomic<bool> stop{false};
  std::vector<std::atomic<char*>> shared(512);
  std::thread flusher([&] {
    while (!stop) reconcile(sink_);
  });
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      Cache own{};
      for (int i = 0; i < 40000; ++i) {
        const size_t size = random() % 8 == 0 ? 1 + random() % 60000 : 1 + random() % 2000;
        auto* p = static_cast<char*>(malloc(size));
        object_born(own, sink_, address(p), size);
        char* given = shared[random() % shared.size()].exchange(p);
        if (given == nullptr) continue;
        if (random() % 4 == 0) {
          const uint64_t remembered = before_move(address(given));
          const uintptr_t old = address(given);
          given = static_cast<char*>(realloc(given, 1 + random() % 60000));
          after_move(own, sink_, remembered, old, address(given), 0);
        }
        object_dying(own, sink_, address(given));
        free(given);
      }
    });
  }
  for (auto& t : threads) t.join();
  stop = true;
  flusher.join();
  for (auto& slot : shared) {
    char* p = slot.load();
    if (p == nullptr) continue;
    const Span* span = replay_.holding(address(p));
    ASSERT_NE(span, nullptr);
    ASSERT_EQ(span->source == SpanSource::kLarge, usable(p) > 14336);
    if (span->source == SpanSource::kSlab) {
      ASSERT_EQ(span->object_size, usable(p));
    }
    drop(p);
  }
  EXPECT_EQ(replay_.count(SpanSource::kLarge), 0U);
}

}  // namespace
}  // namespace traceaf::emitter::spans
