// The interning map: one id a key, also when many threads insert the same keys at once; empty again after clear.
#include "emitter/intern.h"

#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace traceaf::emitter {
namespace {

struct Entry {
  uint64_t key;
  std::atomic<uint32_t> next;
};
// Few heads, so that chains are long and inserts collide.
using Map = InternMap<Entry, 6, 8, 1024>;

uint32_t intern(Map& map, uint64_t key) {
  return map.find_or_add(
      mix(key, 0), [&](const Entry& e) { return e.key == key; }, [&](Entry& e, uint32_t) { e.key = key; });
}

TEST(Intern, SameKeySameIdOtherKeyOtherId) {
  static Map map;
  std::set<uint32_t> ids;
  for (uint64_t key = 1; key <= 5000; ++key) ids.insert(intern(map, key));
  EXPECT_EQ(ids.size(), 5000u);
  EXPECT_EQ(*ids.begin(), 1u);
  EXPECT_EQ(*ids.rbegin(), 5000u);  // dense
  for (uint64_t key = 1; key <= 5000; ++key) EXPECT_EQ(map.at(intern(map, key))->key, key);
  map.clear();
  EXPECT_EQ(intern(map, 77), 1u);
  EXPECT_EQ(map.limit(), 2u);
}

TEST(Intern, ThreadsAgree) {
  static Map map;
  constexpr unsigned kThreads = 4;
  constexpr uint64_t kKeys = 20000;
  std::vector<std::vector<uint32_t>> seen(kThreads, std::vector<uint32_t>(kKeys));
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kKeys; ++i) seen[t][i] = intern(map, i + 1);
    });
  for (auto& thread : threads) thread.join();
  for (uint64_t i = 0; i < kKeys; ++i) {
    EXPECT_EQ(map.at(seen[0][i])->key, i + 1);
    for (unsigned t = 1; t < kThreads; ++t) ASSERT_EQ(seen[t][i], seen[0][i]);
  }
}

TEST(Intern, FullMapSaysSo) {
  static InternMap<Entry, 4, 3, 2> small;  // 2 chunks of 8, index 0 unused
  const auto add = [&](uint64_t key) {
    return small.find_or_add(
        mix(key, 0), [&](const Entry& e) { return e.key == key; }, [&](Entry& e, uint32_t) { e.key = key; });
  };
  for (uint64_t key = 1; key <= 15; ++key) EXPECT_NE(add(key), 0u);
  EXPECT_EQ(add(16), 0u);
  EXPECT_NE(add(7), 0u);
}

}  // namespace
}  // namespace traceaf::emitter
