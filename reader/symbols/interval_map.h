// Finds the innermost of many nested address intervals by one binary search: overlaps are flattened when it is built.
#pragma once

#include <cstdint>
#include <vector>

namespace traceaf::reader::symbols {

struct Interval {
  uint64_t lo = 0, hi = 0;  // [lo, hi)
  uint32_t depth = 0;  // of intervals that begin together the deepest is innermost, then the shortest, then the last
  uint32_t value = 0;
};

class IntervalMap {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  IntervalMap() = default;
  // Empty intervals are ignored. Intervals that cross instead of nesting are legal: the one that began later wins.
  explicit IntervalMap(std::vector<Interval> intervals);
  // Value of the innermost interval that holds `address`, or kNone.
  [[nodiscard]] uint32_t find(uint64_t address) const;
  [[nodiscard]] bool empty() const { return segments_.empty(); }

 private:
  struct Segment {
    uint64_t lo, hi;
    uint32_t value;
  };
  void emit(uint64_t lo, uint64_t hi, uint32_t value);
  std::vector<Segment> segments_;  // sorted, disjoint
};

}  // namespace traceaf::reader::symbols
