// The ids in front of the type map: what is found was put there under that very key; what does not fit is not found.
#include "emitter/types.h"

#include <map>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace traceaf::emitter {
namespace {

using wire::Entry;

TEST(TypeFront, KeysTellEveryPartApart) {
  std::map<uint64_t, int> keys;
  for (const uint32_t node : {0u, 1u, 2u, 1u << 26})
    for (const Entry entry : {Entry::k_malloc, Entry::k_calloc, Entry::k_inherited})
      for (const uint8_t align : {0, 4, 31})
        for (const uint64_t size : {uint64_t{0}, uint64_t{1}, uint64_t{4096}, (uint64_t{1} << 27) - 1}) {
          const uint64_t key = TypeFront::key(node, entry, align, size);
          EXPECT_NE(key, TypeFront::kNoKey);
          EXPECT_EQ(keys[key]++, 0);
        }
  EXPECT_EQ(TypeFront::key(1, Entry::k_malloc, 0, uint64_t{1} << 27), TypeFront::kNoKey);
  EXPECT_EQ(TypeFront::key(1, Entry::k_malloc, 32, 8), TypeFront::kNoKey);
  EXPECT_EQ(TypeFront::key(1u << 27, Entry::k_malloc, 0, 8), TypeFront::kNoKey);
}

TEST(TypeFront, FindsWhatWasAddedAndNothingElse) {
  static TypeFront front;
  uint32_t kept = 0;
  for (const bool cleared : {false, true}) {
    kept = 0;
    for (uint32_t node = 0; node < 300; ++node)
      for (uint64_t size = 0; size < 40; ++size) {
        const uint64_t key = TypeFront::key(node, Entry::k_malloc, 0, size);
        ASSERT_EQ(front.find(key, node), 0u);
        const uint32_t id = node * 40 + static_cast<uint32_t>(size) + 1;
        front.add(key, node, id);
        const uint32_t found = front.find(key, node);
        ASSERT_TRUE(found == id || found == 0);  // full groups leave some out
        kept += found != 0 ? 1 : 0;
      }
    // Sizes of one node fill its own group of 8 and share the overflow groups of 128 Ki places.
    EXPECT_GT(kept, 300u * 8u);
    if (!cleared) front.clear();
  }
}

TEST(TypeFront, ThreadsNeverSeeAnIdOfAnotherKey) {
  static TypeFront front;
  std::vector<std::thread> threads;
  std::atomic<uint64_t> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&wrong] {
      for (uint32_t i = 0; i < 20000; ++i) {
        const uint32_t node = i % 512;
        const uint64_t size = i / 512;
        const uint64_t key = TypeFront::key(node, Entry::k_malloc, 0, size);
        const uint32_t id = node * 64 + static_cast<uint32_t>(size) + 1;
        const uint32_t before = front.find(key, node);
        if (before != 0 && before != id) ++wrong;
        front.add(key, node, id);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
}

}  // namespace
}  // namespace traceaf::emitter
