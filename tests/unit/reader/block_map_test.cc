// The map of live blocks against std::map.
#include "reader/block_map.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

namespace traceaf::reader {
namespace {

// Random inserts and erases; `spread` shapes the addresses.
void compare(uint64_t seed, const std::function<uint64_t(uint64_t)>& spread) {
  std::mt19937_64 random(seed);
  BlockMap map;
  std::map<uint64_t, uint64_t> expected;
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t address = spread(random());
    if (random() % 5 < 3) {
      const auto [entry, is_new] = map.insert(address);
      if (is_new) entry->block = {static_cast<uint64_t>(i), 0, 1, 1};
      ASSERT_EQ(is_new, expected.try_emplace(address, i).second);
      ASSERT_EQ(entry->block.size, expected.at(address));
    } else if (auto* const entry = map.find(address); entry != nullptr) {
      ASSERT_EQ(entry->block.size, expected.at(address));
      map.erase(entry);
      expected.erase(address);
      ASSERT_EQ(map.find(address), nullptr);
    } else {
      ASSERT_FALSE(expected.contains(address));
    }
    ASSERT_EQ(map.size(), expected.size());
  }
  std::map<uint64_t, uint64_t> left;
  map.for_each([&](uint64_t address, const Block& block) { left[address] = block.size; });
  EXPECT_EQ(left, expected);
  map.clear();
  EXPECT_EQ(map.size(), 0U);
  EXPECT_EQ(map.find(spread(1)), nullptr);
}

TEST(BlockMap, EqualsAMapOnDenseAddresses) {
  compare(1, [](uint64_t r) { return 0x10000 + r % 3000 * 16; });
}
TEST(BlockMap, EqualsAMapOnStridesOfPages) {
  compare(2, [](uint64_t r) { return r % 20000 << 12; });
}
TEST(BlockMap, EqualsAMapOnAddressesThatNeverComeBack) {
  uint64_t next = 0x10000;
  compare(4, [&](uint64_t r) { return r % 3 == 0 ? next - 16 * (r % 50) : next += 16; });
}
TEST(BlockMap, EqualsAMapOnAnyAddress) {
  compare(3, [](uint64_t r) { return r % 7 == 0 ? r % 5000 : ~(r % 50000); });
}

}  // namespace
}  // namespace traceaf::reader
