// Ids dense, far apart, and moving from the one to the other.
#include "reader/id_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace traceaf::reader {
namespace {

TEST(IdTable, KeepsEveryValueHoweverTheIdsCome) {
  std::mt19937_64 random(9);
  IdTable<uint64_t> table;
  std::map<uint64_t, uint64_t> expected;
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 20000; ++i) {
      // Descending, ascending and wild ids together.
      const uint64_t id = i % 3 == 0 ? 60000 - i : i % 3 == 1 ? i : random() >> (random() % 64);
      table[id] = i + 1;
      expected[id] = i + 1;
    }
    for (const auto& [id, value] : expected) {
      ASSERT_NE(table.find(id), nullptr) << id;
      ASSERT_EQ(*table.find(id), value) << id;
    }
    table.clear();
    expected.clear();
    EXPECT_EQ(table.find(5), nullptr);
  }
}

TEST(IdTable, OneLargeIdCostsLittle) {
  struct Large {
    char bytes[4096];
  };
  IdTable<Large> table;
  for (int i = 1; i < 64; ++i) table[uint64_t{1} << i].bytes[0] = 1;  // would be 2^63 * 4 KiB as a vector
  EXPECT_EQ(table.find(uint64_t{1} << 63)->bytes[0], 1);
  EXPECT_EQ(table.find((uint64_t{1} << 63) - 1), nullptr);
}

}  // namespace
}  // namespace traceaf::reader
