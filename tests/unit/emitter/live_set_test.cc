// The table of live blocks against a plain map, and the live set under threads, forks and its end.
#include "emitter/live_set.h"

#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

namespace traceaf::emitter {
namespace {

bool operator==(const LiveBlock& a, const LiveBlock& b) {
  return a.address == b.address && a.size == b.size && a.node == b.node && a.entry == b.entry &&
         a.align_log2 == b.align_log2;
}

// A table beside a map that says what it must hold.
class Pair {
 public:
  ~Pair() {
    table_.forget();
    LivePool::release(pool_.detach());
  }
  void add(const LiveBlock& block) {
    ASSERT_TRUE(table_.add(pool_, block));
    map_[block.address] = block;
  }
  void remove(uintptr_t address) {
    table_.remove(address);
    map_.erase(address);
  }
  void check() const {
    size_t seen = 0, wrong = 0;
    table_.visit([&](const LiveBlock& block) {
      ++seen;
      const auto known = map_.find(block.address);
      wrong += known != map_.end() && known->second == block ? 0 : 1;
    });
    ASSERT_EQ(wrong, 0u);
    ASSERT_EQ(seen, map_.size());
  }
  void mend() { ASSERT_TRUE(table_.mend(pool_)); }
  [[nodiscard]] size_t size() const { return map_.size(); }

 private:
  LivePool pool_;
  LiveTable table_;
  std::unordered_map<uintptr_t, LiveBlock> map_;
};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  uint64_t below(uint64_t n) { return engine_() % n; }
  // Mostly what a table holds in one word, now and then just at or beyond what it can.
  LiveBlock block(uintptr_t address) {
    constexpr uint64_t kSizes[] = {0, 1, (1u << 27) - 1, 1u << 27, uint64_t{1} << 32, ~uint64_t{0}};
    constexpr uint32_t kNodes[] = {0, (1u << 27) - 1, 1u << 27, ~0u};
    const bool odd = below(8) == 0;
    return {address, odd ? kSizes[below(6)] : below(5000),
            odd ? kNodes[below(4)] : static_cast<uint32_t>(below(100000)),
            static_cast<uint8_t>(odd ? below(256) : 1 + below(20)), static_cast<uint8_t>(odd ? below(64) : below(13))};
  }

 private:
  std::mt19937_64 engine_;
};

// `addresses` in random order: added, replaced and removed, now mostly this, now mostly that.
void churn(const std::vector<uintptr_t>& addresses, unsigned seed, size_t changes) {
  Pair pair;
  Random random(seed);
  size_t largest = 0;
  for (size_t i = 0; i < changes; ++i) {
    const uintptr_t address = addresses[random.below(addresses.size())];
    const bool filling = i * 6 / changes % 2 == 0;
    if ((random.below(8) == 0) != filling)
      pair.add(random.block(address));
    else
      pair.remove(address);
    if (i % (changes / 20) == 0) pair.check();
    if (i % (changes / 5) == 1) pair.mend();
    largest = std::max(largest, pair.size());
  }
  pair.check();
  EXPECT_GT(largest, addresses.size() / 4);
  for (const uintptr_t address : addresses) pair.remove(address);
  EXPECT_EQ(pair.size(), 0u);
  pair.check();
}

TEST(LiveTable, DenseBlocksOfAllAlignments) {
  std::vector<uintptr_t> addresses;
  for (uintptr_t at = 0x555555550000; addresses.size() < 20000; at += 8) addresses.push_back(at);
  churn(addresses, 1, 200000);
}

TEST(LiveTable, AddressesAtBothEndsAndEverywhere) {
  std::vector<uintptr_t> addresses;
  for (uintptr_t i = 1; i <= 400; ++i) {
    addresses.push_back(i);
    addresses.push_back(0 - i);
    addresses.push_back(0x7fffffffffff - i);
    addresses.push_back(uintptr_t{1} << (i % 64) | i * 16);
  }
  std::mt19937_64 engine(2);
  for (unsigned i = 0; i < 20000; ++i) addresses.push_back(engine() << (i % 5) | 1u << (i % 4));
  churn(addresses, 3, 200000);
}

TEST(LiveTable, BlocksOfAPageAndMore) {
  std::vector<uintptr_t> addresses;
  for (uintptr_t i = 0; i < 20000; ++i) addresses.push_back(0x7f0000000010 + i * 4096 * (1 + i % 70));
  churn(addresses, 4, 200000);
}

TEST(LiveTable, SmallWrittenOverLargeAndBack) {
  Pair pair;
  const uintptr_t at = 0x10000;
  pair.add({at, uint64_t{1} << 40, 1, 1, 0});
  pair.add({at, 5, 2, 1, 0});
  pair.check();
  pair.add({at, 7, ~0u, 1, 0});
  pair.check();
  pair.remove(at);
  pair.check();
  pair.add({at, 9, 3, 2, 4});
  pair.check();
}

// A moving window over ever new addresses, blocks of many sizes: memory follows what is alive at once.
TEST(LiveTable, EverNewAddressesDoNotGrowIt) {
  LivePool pool;
  LiveTable table;
  constexpr uintptr_t kWindow = 2000, kBlocks = 400000;
  const auto address = [](uintptr_t i) { return 0x600000000000 + i * 40960 + i % 3 * 16 + i % 2 * 8; };
  uint64_t early = 0;
  for (uintptr_t i = 0; i < kBlocks; ++i) {
    ASSERT_TRUE(table.add(pool, {address(i), i, 1, 1, 0}));
    if (i >= kWindow) table.remove(address(i - kWindow));
    if (i == 2 * kWindow) early = g_own_bytes.load();
  }
  EXPECT_LE(g_own_bytes.load(), early + LivePool::kBlock);
  size_t left = 0;
  table.visit([&](const LiveBlock& block) { left += block.address >= address(kBlocks - kWindow) ? 1 : 1000000; });
  EXPECT_EQ(left, kWindow);
  table.forget();
  LivePool::release(pool.detach());
}

// The copy that a fork makes of a table in the middle of a change, mended: blocks that were not being changed are there
// once and as they were, and the table works on.
TEST(LiveTable, MendsWhatAForkCut) {
  static LivePool pool;
  static LiveTable table;
  // Leaves with few and with many blocks that come and go; every 4th address, and every 4th leaf of one block, stays.
  const auto address = [](uintptr_t i) {
    return i % 2 == 0 ? 0x100000 + i * 16 + i % 3 / 2 * 8 : 0x7f0000000000 + i * 16384 + i % 64;
  };
  const auto stays = [](uintptr_t i) { return i % 8 < 2; };
  constexpr uintptr_t kAddresses = 6000;
  for (uintptr_t i = 0; i < kAddresses; ++i)
    if (stays(i)) table.add(pool, {address(i), i, 7, 1, 0});
  std::atomic<bool> stop{false};
  std::thread thread([&] {
    Random random(5);
    while (!stop) {
      const uintptr_t i = random.below(kAddresses);
      if (stays(i)) continue;
      if (random.below(2) == 0)
        table.add(pool, random.block(address(i)));
      else
        table.remove(address(i));
    }
  });
  for (unsigned n = 0; n < 200 && !HasFailure(); ++n) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      pool.after_fork();
      if (!table.mend(pool)) _exit(1);
      std::unordered_map<uintptr_t, LiveBlock> seen;
      bool twice = false;
      table.visit([&](const LiveBlock& block) { twice |= !seen.emplace(block.address, block).second; });
      if (twice) _exit(2);
      for (uintptr_t i = 0; i < kAddresses; ++i)
        if (stays(i) && !(seen[address(i)] == LiveBlock{address(i), i, 7, 1, 0})) _exit(3);
      for (uintptr_t i = 0; i < kAddresses; ++i) table.remove(address(i));
      for (uintptr_t i = 0; i < kAddresses; ++i) table.add(pool, {address(i), i, 8, 1, 0});
      size_t count = 0, wrong = 0;
      table.visit([&](const LiveBlock& block) {
        ++count;
        wrong += block.node == 8 ? 0 : 1;
      });
      _exit(count == kAddresses && wrong == 0 ? 0 : 4);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << WEXITSTATUS(status);
  }
  stop = true;
  thread.join();
  table.forget();
  LivePool::release(pool.detach());
}

TEST(LiveSet, StopGivesMemoryBackAndForgets) {
  const uint64_t before = g_own_bytes.load();
  live_set_start();
  EXPECT_TRUE(live_set_active());
  for (uintptr_t i = 1; i <= 300000; ++i)
    ASSERT_TRUE(live_set_add(nullptr, {i * 32, i % 3 == 0 ? i << 30 : i, 1, 1, 0}));
  EXPECT_GT(g_own_bytes.load(), before);
  live_set_stop();
  EXPECT_FALSE(live_set_active());
  EXPECT_EQ(g_own_bytes.load(), before);
}

TEST(LiveSet, ThreadsThatShareEveryShard) {
  const uint64_t before = g_own_bytes.load();
  live_set_start();
  std::atomic<uint64_t> refused{0};
  for ([[maybe_unused]] const bool last : {false, true}) {
    std::vector<std::thread> threads;
    for (uintptr_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        Random random(static_cast<unsigned>(t));
        for (unsigned i = 0; i < 100000; ++i) {
          const uintptr_t address = 0x100000 + (random.below(50000) * 4 + t) * 8;
          if (random.below(2) == 0)
            refused += live_set_add(nullptr, random.block(address)) ? 0 : 1;
          else
            refused += live_set_remove(nullptr, address) ? 0 : 1;
        }
      });
#ifndef __SANITIZE_THREAD__  // it takes memory that one thread unmaps and another gets for the same
    // The second time the set ends under their feet; what they add later is given back by the next end.
    if (last) live_set_stop();
#endif
    for (auto& thread : threads) thread.join();
  }
  live_set_stop();
  EXPECT_EQ(refused, 0u);
  EXPECT_EQ(g_own_bytes.load(), before);
}

// A fork while other threads change the set: the child's set is whole, whatever they were doing.
TEST(LiveSet, ForksUnderThreads) {
  live_set_start();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (uintptr_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      Random random(static_cast<unsigned>(t));
      while (!stop) {
        const uintptr_t address = 0x100000 + (random.below(3000) * 4 + t) * 16;
        if (random.below(2) == 0)
          live_set_add(nullptr, random.block(address));
        else
          live_set_remove(nullptr, address);
      }
    });
  for (unsigned n = 0; n < 60; ++n) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      live_set_after_fork();
      for (uintptr_t i = 0; i < 12000; ++i) live_set_remove(nullptr, 0x100000 + i * 16);
      for (uintptr_t i = 0; i < 12000; ++i) live_set_add(nullptr, {0x100000 + i * 16, i, 1, 1, 0});
      for (uintptr_t i = 0; i < 12000; ++i) live_set_remove(nullptr, 0x100000 + i * 16);
      live_set_stop();
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  live_set_stop();
}

}  // namespace
}  // namespace traceaf::emitter
