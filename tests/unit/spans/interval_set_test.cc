// The interval set against a table of pages: random changes, the same content, events that add up.
#include "emitter/spans/interval_set.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <vector>

#include "tests/unit/spans/replay.h"

namespace traceaf::emitter::spans {
namespace {

using test::Replay;
using wire::SpanSource;

constexpr uintptr_t kBase = uintptr_t{1} << 32;

// What the set must do, page by page.
class Model {
 public:
  explicit Model(size_t pages) : owner_(pages, -1) {}

  void insert(size_t lo, size_t hi, SpanSource source) {
    remove(lo, hi, ~uint64_t{0});
    add(lo, hi, source);
  }
  void remove(size_t lo, size_t hi, uint64_t up_to) {
    const uint64_t before = serial_;
    for (size_t page = lo; page < hi; ++page) {
      const int id = owner_[page];
      if (id < 0 || spans_[static_cast<size_t>(id)].serial > std::min(up_to, before)) continue;
      const auto span = spans_[static_cast<size_t>(id)];
      for (size_t p = span.lo; p < span.hi; ++p) owner_[p] = -1;
      if (span.source == SpanSource::kSlab || span.source == SpanSource::kLarge) continue;
      if (span.lo < lo) add(span.lo, lo, span.source);
      if (span.hi > hi) add(hi, span.hi, span.source);
    }
  }
  void grow(size_t at, size_t lo, size_t hi) {
    const auto span = spans_[static_cast<size_t>(owner_[at])];
    if (lo < span.lo) remove(lo, span.lo, ~uint64_t{0});
    if (hi > span.hi) remove(span.hi, hi, ~uint64_t{0});
    for (size_t p = span.lo; p < span.hi; ++p) owner_[p] = -1;
    add(std::min(lo, span.lo), std::max(hi, span.hi), span.source);
  }
  void fill(size_t at, size_t lo, size_t hi, SpanSource source) {
    size_t from = at;
    size_t to = at + 1;
    while (from > lo && owner_[from - 1] < 0) --from;
    while (to < hi && owner_[to] < 0) ++to;
    if (from > lo && source_at(from - 1) == source) return grow(from - 1, from, to);
    if (to < hi && source_at(to) == source) return grow(to, from, to);
    add(from, to, source);
  }
  void erase(size_t at) {
    const auto span = spans_[static_cast<size_t>(owner_[at])];
    for (size_t p = span.lo; p < span.hi; ++p) owner_[p] = -1;
  }
  bool held(size_t page) const { return owner_[page] >= 0; }
  SpanSource source_at(size_t page) const { return spans_[static_cast<size_t>(owner_[page])].source; }
  uint64_t serial() const { return serial_; }

  std::vector<Span> content() const {
    std::vector<Span> all;
    for (size_t page = 0; page < owner_.size();) {
      if (owner_[page] < 0) {
        ++page;
        continue;
      }
      const auto& s = spans_[static_cast<size_t>(owner_[page])];
      EXPECT_EQ(s.lo, page);
      all.push_back({kBase + s.lo * 4096, (s.hi - s.lo) * 4096, wire::kSpanKindOther, 0, s.source, false});
      page = s.hi;
    }
    return all;
  }

 private:
  struct Item {
    size_t lo, hi;
    SpanSource source;
    uint64_t serial;
  };
  void add(size_t lo, size_t hi, SpanSource source) {
    for (size_t p = lo; p < hi; ++p) owner_[p] = static_cast<int>(spans_.size());
    spans_.push_back({lo, hi, source, ++serial_});
  }
  std::vector<int> owner_;
  std::vector<Item> spans_;
  uint64_t serial_ = 0;
};

std::vector<Span> content(const IntervalSet& set) {
  std::vector<Span> all;
  for (const auto* node = set.first(0); node != nullptr; node = node->next()) all.push_back(node->span());
  return all;
}

void expect_same(const std::vector<Span>& a, const std::vector<Span>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_TRUE(test::same(a[i], b[i])) << test::text(a[i]) << test::text(b[i]);
}

// `pages` decides how crowded the set is, `longest` how much a change overlaps.
void run_random(size_t pages, size_t longest, int changes, unsigned seed) {
  IntervalSet set;
  Model model(pages);
  Replay replay;
  Sink sink = replay.sink();
  std::mt19937 random(seed);
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  uint64_t old = 0;
  for (int i = 0; i < changes; ++i) {
    const size_t lo = pick(pages - 1);
    const size_t hi = std::min(pages, lo + 1 + pick(longest));
    const auto source = static_cast<SpanSource>(1 + pick(8));
    const uintptr_t at = kBase + lo * 4096;
    const Span span{at, (hi - lo) * 4096, wire::kSpanKindOther, 0, source, false};
    ASSERT_EQ(set.find(at + 17) != nullptr, model.held(lo));
    switch (pick(8)) {
      case 0:
      case 1:
      case 2:
        set.insert(sink, span);
        model.insert(lo, hi, source);
        break;
      case 3:
      case 4:
        set.remove(sink, at, kBase + hi * 4096);
        model.remove(lo, hi, ~uint64_t{0});
        break;
      case 5:
        set.remove(sink, at, kBase + hi * 4096, old);
        model.remove(lo, hi, old);
        old = set.serial() - std::min<uint64_t>(set.serial(), pick(40));
        break;
      case 6:
        if (model.held(lo)) {
          set.grow(sink, set.find(at), at, kBase + hi * 4096);
          model.grow(lo, lo, hi);
        } else {
          const size_t first = lo - std::min(lo, pick(longest));
          set.fill(sink, at + 5, {kBase + first * 4096, (hi - first) * 4096, wire::kSpanKindOther, 0, source, false});
          model.fill(lo, first, hi, source);
        }
        break;
      default:
        if (model.held(lo)) {
          set.erase(sink, set.find(at + 4095));
          model.erase(lo);
        }
        break;
    }
    ASSERT_EQ(set.serial(), model.serial());
    if (i % 61 == 0 || i + 1 == changes) {
      const auto now = content(set);
      ASSERT_NO_FATAL_FAILURE(expect_same(now, model.content()));
      ASSERT_NO_FATAL_FAILURE(replay.expect_equal(now));
      ASSERT_EQ(set.size(), now.size());
    }
  }
  EXPECT_TRUE(replay.faults().empty()) << replay.faults().front();
  EXPECT_GT(replay.frees(), static_cast<size_t>(changes) / 8);
  set.clear();
  EXPECT_EQ(set.first(0), nullptr);
}

TEST(IntervalSet, equals_a_page_table_when_ranges_are_small) { run_random(4096, 12, 300000, 1); }
TEST(IntervalSet, equals_a_page_table_when_ranges_are_large) { run_random(2048, 300, 100000, 2); }
TEST(IntervalSet, equals_a_page_table_when_crowded) { run_random(64, 8, 200000, 3); }

TEST(IntervalSet, split_frees_the_old_span_before_it_announces_the_pieces) {
  struct Log {
    std::vector<std::pair<char, uintptr_t>> events;
  } log;
  Sink sink{&log, [](void* l, const Span& s) { static_cast<Log*>(l)->events.emplace_back('a', s.base); },
            [](void* l, uintptr_t base) { static_cast<Log*>(l)->events.emplace_back('f', base); }, nullptr};
  IntervalSet set;
  set.insert(sink, {kBase, 0x8000, wire::kSpanKindOther, 0, SpanSource::kMmap, false});
  set.insert(sink, {kBase + 0x3000, 0x1000, wire::kSpanKindOther, 0, SpanSource::kMmapFile, false});
  const std::vector<std::pair<char, uintptr_t>> expected{
      {'a', kBase}, {'f', kBase}, {'a', kBase}, {'a', kBase + 0x4000}, {'a', kBase + 0x3000}};
  EXPECT_EQ(log.events, expected);
  set.clear();
}

TEST(IntervalSet, epoch_rises_only_when_a_cached_range_loses_addresses) {
  Replay replay;
  Sink sink = replay.sink();
  IntervalSet set;
  const auto* cached = set.insert(sink, {kBase, 0x8000, 1, 0, SpanSource::kBrk, false});
  set.insert(sink, {kBase + 0x10000, 0x8000, 1, 0, SpanSource::kMmap, false});
  set.mark_cached(cached);
  const uint64_t epoch = set.epoch();
  set.remove(sink, kBase + 0x12000, kBase + 0x13000);
  set.grow(sink, cached, kBase, kBase + 0x9000);
  EXPECT_EQ(set.epoch(), epoch);
  set.remove(sink, kBase + 0x8000, kBase + 0x9000);
  EXPECT_GT(set.epoch(), epoch);
  set.clear();
}

// Quadratic behaviour would take minutes here.
TEST(IntervalSet, a_hundred_thousand_spans_stay_quick) {
  Sink sink{nullptr, [](void*, const Span&) {}, [](void*, uintptr_t) {}, nullptr};
  IntervalSet set;
  constexpr size_t kSpans = 100000;
  std::mt19937 random(7);
  std::vector<uintptr_t> bases(kSpans);
  for (size_t i = 0; i < kSpans; ++i) bases[i] = kBase + i * 0x4000;
  std::shuffle(bases.begin(), bases.end(), random);
  const auto start = std::chrono::steady_clock::now();
  for (const uintptr_t base : bases) set.insert(sink, {base, 0x3000, 1, 0, SpanSource::kMmap, false});
  EXPECT_EQ(set.size(), kSpans);
  for (const uintptr_t base : bases) set.remove(sink, base + 0x1000, base + 0x2000);
  EXPECT_EQ(set.size(), 2 * kSpans);
  for (const uintptr_t base : bases) ASSERT_NE(set.find(base + 0x2fff), nullptr);
  set.remove(sink, kBase, kBase + kSpans * 0x4000);
  EXPECT_EQ(set.size(), 0U);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 10.0);
  EXPECT_EQ(set.lost(), 0U);
  set.clear();
}

}  // namespace
}  // namespace traceaf::emitter::spans
