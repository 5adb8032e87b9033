// Flattening of nested intervals by a sweep with a stack of the open ones.
#include "reader/symbols/interval_map.h"

#include <algorithm>

namespace traceaf::reader::symbols {

void IntervalMap::emit(uint64_t lo, uint64_t hi, uint32_t value) {
  if (lo >= hi) return;
  if (!segments_.empty() && segments_.back().hi == lo && segments_.back().value == value) {
    segments_.back().hi = hi;
    return;
  }
  segments_.push_back({lo, hi, value});
}

IntervalMap::IntervalMap(std::vector<Interval> intervals) {
  std::erase_if(intervals, [](const Interval& i) { return i.lo >= i.hi; });
  std::stable_sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) {
    if (a.lo != b.lo) return a.lo < b.lo;
    if (a.depth != b.depth) return a.depth < b.depth;
    return a.hi > b.hi;
  });
  segments_.reserve(intervals.size());
  std::vector<Interval> open;
  uint64_t at = 0;
  // Emits everything below `to`; intervals that ended meanwhile under a longer one are dropped when they surface.
  const auto advance = [&](uint64_t to) {
    while (!open.empty()) {
      const Interval& top = open.back();
      const uint64_t end = std::min(top.hi, to);
      if (end > at) {
        emit(at, end, top.value);
        at = end;
      }
      if (top.hi > to) break;
      open.pop_back();
    }
    at = to;
  };
  for (const Interval& interval : intervals) {
    advance(interval.lo);
    open.push_back(interval);
  }
  advance(UINT64_MAX);
  segments_.shrink_to_fit();
}

uint32_t IntervalMap::find(uint64_t address) const {
  auto it = std::upper_bound(segments_.begin(), segments_.end(), address,
                             [](uint64_t a, const Segment& s) { return a < s.lo; });
  if (it == segments_.begin()) return kNone;
  --it;
  return address < it->hi ? it->value : kNone;
}

}  // namespace traceaf::reader::symbols
