// The small parts of the symbolizer: demangling, nested intervals.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "reader/symbols/demangle.h"
#include "reader/symbols/interval_map.h"

namespace traceaf::reader::symbols {
namespace {

TEST(Demangle, Cpp) {
  EXPECT_EQ(demangle("_Z3fooi"), "foo(int)");
  EXPECT_EQ(demangle("_ZN5outer3BoxIdLi4EE4fillEd"), "outer::Box<double, 4>::fill(double)");
  EXPECT_EQ(demangle("_ZN5outer9innermostIiEEPvPT_"), "outer::innermost<int>(int*)") << "return types are dropped";
  EXPECT_EQ(demangle("_ZN12_GLOBAL__N_16hiddenEv"), "(anonymous namespace)::hidden()");
  EXPECT_EQ(demangle("_ZZ4funcvENKUliE_clEi"), "func()::{lambda(int)#1}::operator()(int) const");
  EXPECT_EQ(demangle("_ZNSt6vectorIiSaIiEE17_M_realloc_insertIJiEEEvN9__gnu_cxx17__normal_iteratorIPiS1_EEDpOT_"),
            "std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(__gnu_cxx::__normal_iterator<int*, "
            "std::vector<int, std::allocator<int> > >, int&&)");
}

TEST(Demangle, Rust) {
  EXPECT_EQ(demangle("_ZN4core3ptr13drop_in_place17h0123456789abcdefE"), "core::ptr::drop_in_place");
  EXPECT_EQ(
      demangle("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE"),
      "<Test + 'static as foo::Bar<Test>>::bar");
  EXPECT_EQ(demangle("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
  EXPECT_EQ(demangle("_RINvNtC3std3mem8align_ofdE"), "std::mem::align_of::<f64>");
}

TEST(Demangle, D) { EXPECT_EQ(demangle("_D8demangle4testFaZv"), "demangle.test(char)"); }

TEST(Demangle, KeepsWhatItDoesNotKnow) {
  for (const char* name :
       {"main", "malloc", "_start", "_Z", "_ZN", "_Znonsense", "_R", "_Rubbish", "_D", "_DYNAMIC", "?"}) {
    EXPECT_EQ(demangle(name), name);
  }
}

TEST(Demangle, EndsOnNamesThatGrowWithoutBound) {
  // f(A<int, int>, A<S0, S0>, A<S1, S1>, ...): the text of each parameter is twice that of the one before.
  const auto doubled = [](int times) {
    std::string name = "_Z1f1AIiiE";
    for (int i = 0; i < times; ++i) {
      const std::string before = fmt::format("S{}_", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]);
      name += fmt::format("S_I{0}{0}E", before);
    }
    return name;
  };
  EXPECT_EQ(
      demangle(doubled(2)),
      "f(A<int, int>, A<A<int, int>, A<int, int> >, A<A<A<int, int>, A<int, int> >, A<A<int, int>, A<int, int> > >)");
  EXPECT_EQ(demangle(doubled(35)), doubled(35));
  EXPECT_EQ(demangle(doubled(2)).substr(0, 2), "f(") << "still works behind one that was given up";
  const std::string deep = "_Z1f" + std::string(30000, 'P') + "i";
  EXPECT_FALSE(demangle(deep).empty());
  const std::string long_name = "_Z" + std::string(200000, '1');
  EXPECT_EQ(demangle(long_name), long_name);
}

TEST(PlainSymbol, DropsVersionsAndMarksOfPartialCopies) {
  EXPECT_EQ(plain_symbol("malloc@@GLIBC_2.2.5"), "malloc");
  EXPECT_EQ(plain_symbol("f.cold"), "f");
  EXPECT_EQ(plain_symbol("f.part.0.cold"), "f");
  EXPECT_EQ(plain_symbol("f.constprop.0.isra.1"), "f");
  EXPECT_EQ(plain_symbol("f.llvm.1234567890"), "f");
  EXPECT_EQ(plain_symbol("f.lto_priv.3"), "f");
  EXPECT_EQ(plain_symbol("f.7"), "f.7");
  EXPECT_EQ(plain_symbol(".text.f"), ".text.f");
  EXPECT_EQ(plain_symbol(".cold"), ".cold");
  EXPECT_EQ(plain_symbol(""), "");
}

TEST(IntervalMap, GivesTheInnermost) {
  const IntervalMap map(
      {{10, 100, 0, 1}, {20, 50, 1, 2}, {30, 40, 2, 3}, {60, 60, 1, 4}, {70, 80, 1, 5}, {200, 201, 0, 6}});
  const auto expect = [&](uint64_t address, uint32_t value) { EXPECT_EQ(map.find(address), value) << address; };
  expect(9, IntervalMap::kNone);
  expect(10, 1);
  expect(20, 2);
  expect(30, 3);
  expect(39, 3);
  expect(40, 2);
  expect(50, 1);
  expect(60, 1);
  expect(75, 5);
  expect(99, 1);
  expect(100, IntervalMap::kNone);
  expect(200, 6);
  expect(UINT64_MAX, IntervalMap::kNone);
  EXPECT_EQ(IntervalMap().find(5), IntervalMap::kNone);
}

TEST(IntervalMap, PrefersDepthAndThenLaterOnesThatBeginTogether) {
  const IntervalMap map(
      {{10, 20, 1, 1}, {10, 20, 0, 2}, {30, 40, 0, 3}, {30, 40, 0, 4}, {50, 60, 0, 5}, {50, 55, 0, 6}});
  EXPECT_EQ(map.find(15), 1u);
  EXPECT_EQ(map.find(35), 4u);
  EXPECT_EQ(map.find(52), 6u);
  EXPECT_EQ(map.find(57), 5u);
}

TEST(IntervalMap, CoversExactlyWhatTheIntervalsCoverEvenWhenTheyCross) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<Interval> intervals;
    for (uint32_t i = 0, n = random() % 12; i < n; ++i) {
      const uint64_t lo = random() % 64;
      intervals.push_back({lo, lo + random() % 32, static_cast<uint32_t>(random() % 3), i});
    }
    const IntervalMap map(intervals);
    for (uint64_t address = 0; address < 128; ++address) {
      const uint32_t found = map.find(address);
      // Of all that hold the address the one that began last wins.
      uint64_t latest = 0;
      bool any = false;
      for (const Interval& i : intervals) {
        if (i.lo > address || address >= i.hi) continue;
        any = true;
        latest = std::max(latest, i.lo);
      }
      ASSERT_EQ(found != IntervalMap::kNone, any);
      if (!any) continue;
      ASSERT_LE(intervals[found].lo, address);
      ASSERT_LT(address, intervals[found].hi);
      ASSERT_EQ(intervals[found].lo, latest);
    }
  }
}

}  // namespace
}  // namespace traceaf::reader::symbols
