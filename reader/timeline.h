// The course of the heap as at most kPoints points, whatever the length of the trace: each point stands for a stretch
// of time and shows the moment in it when most bytes were live, so that no peak is lost by thinning.
#pragma once

#include <cstdint>
#include <vector>

#include "reader/profile.h"

namespace traceaf::reader {

class Timeline {
 public:
  static constexpr size_t kPoints = 2048;

  // After each event; times never go back.
  void observe(uint64_t time_ns, const Amount& live, const Amount& allocated) {
    if (time_ns >= end_) [[unlikely]] {
      if (!roll(time_ns) && live.bytes <= current_.live_bytes) return;
    } else if (live.bytes <= current_.live_bytes) {
      return;
    }
    current_ = {time_ns, live.bytes, live.count, allocated.bytes, allocated.count, 0};
  }
  void sample_rss(uint64_t time_ns, uint64_t bytes);
  // The points, the last one at `time_ns` with the final state.
  std::vector<TimelinePoint> finish(uint64_t time_ns, const Amount& live, const Amount& allocated);

 private:
  struct Rss {
    uint64_t time_ns, bytes;
  };
  // Opens the stretch of `time_ns`; false when it holds a point already.
  bool roll(uint64_t time_ns);
  void halve();

  std::vector<TimelinePoint> points_;
  TimelinePoint current_;
  bool open_ = false;      // current_ holds a state
  uint64_t width_ = 1000;  // ns of a stretch; stretches begin at multiples of it
  uint64_t end_ = 0;       // of the current stretch
  std::vector<Rss> rss_;
  uint64_t rss_width_ = 0;  // samples closer than this to the last one are merged into it
};

}  // namespace traceaf::reader
