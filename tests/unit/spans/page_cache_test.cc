// The page cache never answers for a page that was dropped, whatever it holds besides.
#include "emitter/spans/page_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace traceaf::emitter::spans {
namespace {

TEST(PageCache, answers_zero_before_it_has_memory) {
  PageCache pages;
  EXPECT_EQ(pages.get(0x5000).tag, 0U);
  pages.set(0x5000, 0x6000, 3);
  pages.drop(0x5000, 0x6000);
  pages.clear();
  EXPECT_EQ(pages.get(0x5000).tag, 0U);
}

TEST(PageCache, forgets_but_never_lies) {
  PageCache pages;
  pages.prepare();
  std::map<uintptr_t, std::pair<unsigned, unsigned>> truth;
  std::mt19937_64 random(5);
  size_t known = 0;
  for (int i = 0; i < 200000; ++i) {
    // Three neighbourhoods whose pages share entries.
    const uintptr_t page = (random() % 3) * 65536 + 0x7f0000000 + random() % 64;
    const uintptr_t count = 1 + random() % 7;
    if (random() % 3 != 0) {
      const unsigned tag = 1 + random() % 39;
      pages.set(page << 12, (page + count) << 12, tag);
      for (uintptr_t p = page; p < page + count; ++p) truth[p] = {tag, static_cast<unsigned>(p - page)};
    } else {
      pages.drop(page << 12, (page + count) << 12);
      for (uintptr_t p = page; p < page + count; ++p) truth.erase(p);
    }
    const uintptr_t asked = (random() % 3) * 65536 + 0x7f0000000 + random() % 64;
    const auto fact = pages.get((asked << 12) + random() % 4096);
    if (fact.tag == 0) continue;
    ++known;
    ASSERT_TRUE(truth.count(asked) != 0);
    ASSERT_EQ(truth[asked], std::make_pair(fact.tag, fact.index));
  }
  EXPECT_GT(known, 20000U);
  pages.clear();
  for (const auto& [page, fact] : truth) ASSERT_EQ(pages.get(page << 12).tag, 0U);
}

TEST(PageCache, a_range_longer_than_the_table_drops_all_its_pages) {
  PageCache pages;
  pages.prepare();
  pages.set(0x7f0000fff000, 0x7f0001000000, 1);
  pages.set(0x7f0200000000, 0x7f0200001000, 2);  // beyond one table length
  pages.set(0x7f1000005000, 0x7f1000006000, 3);  // outside
  pages.drop(0x7f0000000000, 0x7f0400000000);
  EXPECT_EQ(pages.get(0x7f0000fff000).tag, 0U);
  EXPECT_EQ(pages.get(0x7f0200000000).tag, 0U);
  EXPECT_EQ(pages.get(0x7f1000005000).tag, 3U);
}

}  // namespace
}  // namespace traceaf::emitter::spans
