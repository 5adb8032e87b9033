// The cache of whole stacks: an entry answers for exactly its start, while its words hold what they held.
#include "emitter/unwind/stack_cache.h"

#include <memory>

#include <gtest/gtest.h>

#include "emitter/modules.h"

namespace traceaf::emitter::unwind {
namespace {

constexpr uint32_t kFrames = 23;  // not a multiple of the words compared at once

class StackCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    for (uint32_t i = 0; i < kFrames; ++i) stack_[i] = 0x1000 + i;
  }
  void keep(const Start& start, bool uses_bp, uint32_t node) {
    StackWord* words = cache_->begin(start);
    for (uint32_t i = 0; i < kFrames; ++i) words[i] = {reinterpret_cast<uintptr_t>(stack_ + i), stack_[i]};
    cache_->keep(start, uses_bp, kFrames, node, settled_epoch());
  }

  uintptr_t stack_[kFrames] = {};
  std::unique_ptr<StackCache> cache_ = std::make_unique<StackCache>();
};

TEST_F(StackCacheTest, AnswersForItsStartOnly) {
  const Start start{0x400123, 0x7000, 5};
  EXPECT_EQ(cache_->find(start), 0u);
  keep(start, true, 77);
  EXPECT_EQ(cache_->find(start), 77u);
  EXPECT_EQ(cache_->find({0x400124, 0x7000, 5}), 0u);
  EXPECT_EQ(cache_->find({0x400123, 0x7008, 5}), 0u);
  EXPECT_EQ(cache_->find({0x400123, 0x7000, 6}), 0u);
  keep(start, false, 78);
  EXPECT_EQ(cache_->find({0x400123, 0x7000, 6}), 78u);
}

TEST_F(StackCacheTest, EveryWordCounts) {
  const Start start{0x400123, 0x7000, 5};
  keep(start, true, 77);
  for (uint32_t i = 0; i < kFrames; ++i) {
    ++stack_[i];
    EXPECT_EQ(cache_->find(start), 0u) << i;
    --stack_[i];
    EXPECT_EQ(cache_->find(start), 77u) << i;
  }
}

TEST_F(StackCacheTest, AnEntryHoldsForOneEpochOfTheLoadedCode) {
  const Start start{0x400123, 0x7000, 5};
  keep(start, true, 77);
  modules_unload_begin();
  EXPECT_EQ(cache_->find(start), 0u);
  keep(start, true, 79);  // a stack walked meanwhile holds for that walk alone
  EXPECT_EQ(cache_->find(start), 0u);
  modules_unload_end();
  EXPECT_EQ(cache_->find(start), 0u);
  keep(start, true, 78);
  EXPECT_EQ(cache_->find(start), 78u);
}

TEST_F(StackCacheTest, AnEntryBegunAndNotKeptIsNone) {
  const Start start{0x400123, 0x7000, 5};
  keep(start, true, 77);
  cache_->begin(start);
  EXPECT_EQ(cache_->find(start), 0u);
}

}  // namespace
}  // namespace traceaf::emitter::unwind
