// The encoding of the hot path gives the bytes of the plain one.
#include "emitter/wire/varint.h"

#include <cstring>

#include <gtest/gtest.h>

namespace traceaf::wire {
namespace {

void expect_same(uint64_t value) {
  uint8_t plain[kMaxVarint] = {};
  uint8_t wide[kMaxVarint + 8] = {};
  const auto bytes = static_cast<size_t>(put_varint(plain, value) - plain);
  ASSERT_EQ(static_cast<size_t>(put_varint_wide(wide, value) - wide), bytes) << value;
  ASSERT_EQ(memcmp(plain, wide, bytes), 0) << value;
  ASSERT_EQ(varint_size(value), bytes) << value;
}

TEST(Varint, WideEqualsPlainAtEveryLength) {
  for (unsigned shift = 0; shift < 64; ++shift) {
    for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, uint64_t{0x5555555555555555}, ~uint64_t{0}}) {
      const uint64_t power = uint64_t{1} << shift;
      expect_same(power - 1);
      expect_same(power);
      expect_same(power | (offset & (power - 1)));
    }
  }
  uint64_t random = 88172645463325252u;
  for (int i = 0; i < 200000; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    expect_same(random >> (i % 64));
  }
}

TEST(Varint, ZigzagKeepsSmallDifferencesSmallAndLosesNothing) {
  const uint64_t coded[] = {zigzag(0), zigzag(~uint64_t{0}), zigzag(1), zigzag(~uint64_t{1}), zigzag(2)};
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(coded[i], i);
  for (unsigned shift = 0; shift < 64; ++shift)
    for (const uint64_t add : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
      const uint64_t value = (uint64_t{1} << shift) + add;
      EXPECT_EQ(unzigzag(zigzag(value)), value);
    }
}

}  // namespace
}  // namespace traceaf::wire
