// The packed rules, and the cache under growth, replacement and many threads.
#include "emitter/unwind/rule_cache.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "emitter/modules.h"

namespace traceaf::emitter::unwind {
namespace {

TEST(Rule, HoldsEveryFieldAtItsLimits) {
  constexpr int64_t kCfaLimit = int64_t{8} << 23, kSavedLimit = int64_t{8} << 11;
  for (const Kind kind :
       {Kind::kNone, Kind::kRsp, Kind::kRbp, Kind::kRealign, Kind::kSignal, Kind::kEnd, Kind::kSlow}) {
    for (const BpRule bp : {BpRule::kKept, BpRule::kAtCfa, BpRule::kAtRbp, BpRule::kLost}) {
      for (const uint32_t module : {1u, 2u, (1u << kModuleIdBits) - 1}) {
        for (const int64_t cfa : {-kCfaLimit, int64_t{-8}, int64_t{0}, int64_t{8}, kCfaLimit - 8}) {
          for (const int64_t saved : {-kSavedLimit, int64_t{-16}, int64_t{0}, kSavedLimit - 8}) {
            ASSERT_TRUE(Rule::fits(cfa, saved));
            const Rule rule = Rule::make(kind, module, bp, cfa, saved);
            EXPECT_TRUE(rule);
            EXPECT_EQ(rule.kind(), kind);
            EXPECT_EQ(rule.bp(), bp);
            EXPECT_EQ(rule.module(), module);
            EXPECT_EQ(rule.cfa(), cfa);
            EXPECT_EQ(rule.saved(), saved);
          }
        }
      }
    }
  }
  for (const int64_t cfa : {kCfaLimit, -kCfaLimit - 8, int64_t{4}}) EXPECT_FALSE(Rule::fits(cfa, 0));
  for (const int64_t saved : {kSavedLimit, -kSavedLimit - 8, int64_t{-12}}) EXPECT_FALSE(Rule::fits(16, saved));
  EXPECT_FALSE(Rule{});
  EXPECT_EQ(Rule{}.kind(), Kind::kNone);
  EXPECT_EQ(Rule{}.module(), 0u);
}

// Keys that no walk of this program uses. Modules must exist for their rules to survive growth.
uint64_t key_of(uint64_t i) { return 0x10'0000'0000 + i * 5; }
Rule rule_of(uint64_t i) {
  const uint32_t module = module_of(reinterpret_cast<uintptr_t>(&rule_of));
  return Rule::make(Kind::kRsp, module, BpRule::kKept, static_cast<int64_t>(8 + i % 1000 * 8));
}

TEST(RuleCache, KeepsEveryRuleWhileItGrows) {
  constexpr uint64_t kRules = 100'000;
  std::vector<const RuleTable*> tables;
  for (uint64_t i = 0; i < kRules; ++i) {
    ASSERT_TRUE(cache_rule(key_of(i), rule_of(i)));
    const RuleTable* table = g_rule_table.load();
    if (tables.empty() || tables.back() != table) tables.push_back(table);
  }
  EXPECT_GE(tables.size(), 4u);
  const RuleTable* table = g_rule_table.load();
  for (uint64_t i = 0; i < kRules; ++i) ASSERT_EQ(table->find(key_of(i)).bits, rule_of(i).bits);
  for (uint64_t i = kRules; i < 2 * kRules; ++i) ASSERT_FALSE(table->find(key_of(i)));
  // A walk that began before may still search the first tables: it finds the same rules or none.
  for (const RuleTable* old : tables) {
    for (uint64_t i = 0; i < kRules; ++i) {
      const Rule found = old->find(key_of(i));
      ASSERT_TRUE(!found || found.bits == rule_of(i).bits);
    }
  }
}

TEST(RuleCache, ReplacesTheRuleOfAKey) {
  const uint64_t key = key_of(1'000'000);
  ASSERT_TRUE(cache_rule(key, rule_of(1)));
  ASSERT_TRUE(cache_rule(key, rule_of(2)));
  EXPECT_EQ(g_rule_table.load()->find(key).bits, rule_of(2).bits);
  EXPECT_FALSE(g_rule_table.load()->find(rule_key(key, true)));
}

TEST(RuleCache, ReadersNeverSeeAHalfWrittenRule) {
  constexpr uint64_t kRules = 60'000, kBase = 2'000'000;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> wrong{0}, found{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        const RuleTable* table = g_rule_table.load(std::memory_order_acquire);
        if (table == nullptr) continue;  // no rule is known yet
        for (uint64_t i = 0; i < kRules; i += 7) {
          const Rule rule = table->find(key_of(kBase + i));
          if (!rule) continue;
          ++found;
          if (rule.bits != rule_of(i).bits) ++wrong;
        }
      }
    });
  }
  std::vector<std::thread> writers;
  for (uint64_t w = 0; w < 2; ++w) {
    writers.emplace_back([&, w] {
      for (uint64_t i = w; i < kRules; i += 2) {
        while (!cache_rule(key_of(kBase + i), rule_of(i))) std::this_thread::yield();
      }
    });
  }
  for (auto& writer : writers) writer.join();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(found, 0u);
  for (uint64_t i = 0; i < kRules; ++i) ASSERT_EQ(g_rule_table.load()->find(key_of(kBase + i)).bits, rule_of(i).bits);
}

}  // namespace
}  // namespace traceaf::emitter::unwind
