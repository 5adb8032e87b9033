// A snapshot of the live set with blocks of every kind: odd addresses, sizes that take no packed entry, many threads.
#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include "session_fixture.h"

namespace traceaf::emitter {
namespace {

TEST_F(SessionTest, SnapshotHasOddBlocksOfManyThreadsExactly) {
  ASSERT_EQ(record("standby,stacks=none",
                   [] {
                     std::atomic<bool> stop{false};
                     std::vector<std::thread> threads;
                     std::atomic<uint64_t> count{0}, bytes{0};
                     for (uint64_t t = 0; t < 4; ++t)
                       threads.emplace_back([&, t] {
                         std::mt19937_64 random(t);
                         std::unordered_map<uint64_t, uint64_t> live;
                         while (!stop || live.size() < 1000) {
                           // In units of 8 bytes, the threads interleaved.
                           const uint64_t i = random() % 20000 * 4 + t;
                           const auto* p = static_cast<const char*>(block(0)) + i * 8;
                           if (const auto known = live.find(i); known != live.end()) {
                             object_dying(__builtin_frame_address(0), p);
                             live.erase(known);
                           } else {
                             live[i] = random() % 10 == 0 ? uint64_t{1} << (27 + i % 8) : random() % 300;
                             object_born(__builtin_frame_address(0), p, live[i], wire::Entry::k_malloc, 0);
                           }
                         }
                         count += live.size();
                         for (const auto& [i, size] : live) bytes += size;
                       });
                     usleep(30000);
                     option_changed("1");
                     usleep(5000);
                     stop = true;
                     for (auto& thread : threads) thread.join();
                     // What must be found goes along as the sizes of two last blocks at higher addresses.
                     const void* told = block(uint64_t{1} << 30);
                     object_born(__builtin_frame_address(0), told, count, wire::Entry::k_valloc, 0);
                     object_born(__builtin_frame_address(0), block((uint64_t{1} << 30) + 1), bytes,
                                 wire::Entry::k_pvalloc, 0);
                     finish();
                   }),
            0);
  const reader::Profile p = read();
  EXPECT_GT(p.inherited.count, 1000u);
  EXPECT_EQ(p.inherited.count + p.allocated.count - p.freed.count, p.live.count);
  EXPECT_EQ(p.unknown_frees, 0u);
  EXPECT_EQ(p.frees_before, 0u);
  EXPECT_EQ(p.double_births, 0u);
  ASSERT_FALSE(p.live_blocks.empty());
  std::vector<reader::LiveBlock> last(p.live_blocks.begin(), p.live_blocks.end());
  std::sort(last.begin(), last.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  ASSERT_GE(last.size(), 2u);
  const uint64_t count = last[last.size() - 2].size;
  const uint64_t bytes = last[last.size() - 1].size;
  EXPECT_EQ(p.live.count, count + 2);
  EXPECT_EQ(p.live.bytes, bytes + bytes + count);
}

}  // namespace
}  // namespace traceaf::emitter
