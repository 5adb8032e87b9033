// Adaptive thinning of the timeline (see timeline.h).
#include "reader/timeline.h"

#include <algorithm>

namespace traceaf::reader {
namespace {

constexpr size_t kRoom = Timeline::kPoints - 1;  // one is kept for the final state

// Of two points of one stretch the one with more live bytes, the earlier when equal.
const TimelinePoint& higher(const TimelinePoint& a, const TimelinePoint& b) {
  return b.live_bytes > a.live_bytes ? b : a;
}

}  // namespace

// Doubles the width of a stretch and merges the points that now share one.
void Timeline::halve() {
  width_ *= 2;
  size_t out = 0;
  for (const TimelinePoint& point : points_) {
    if (out != 0 && points_[out - 1].time_ns / width_ == point.time_ns / width_) {
      points_[out - 1] = higher(points_[out - 1], point);
    } else {
      points_[out++] = point;
    }
  }
  points_.resize(out);
}

bool Timeline::roll(uint64_t time_ns) {
  if (open_) points_.push_back(current_);
  open_ = true;
  // The new stretch takes a place as well.
  while (points_.size() + 1 > kRoom) halve();
  const uint64_t start = time_ns / width_ * width_;
  end_ = start + width_ < start ? ~uint64_t{0} : start + width_;
  // The previous point may lie in the stretch that just became wider: it is reopened.
  if (points_.empty() || points_.back().time_ns < start) return true;
  current_ = points_.back();
  points_.pop_back();
  return false;
}

void Timeline::sample_rss(uint64_t time_ns, uint64_t bytes) {
  if (!rss_.empty() && time_ns < rss_.back().time_ns + rss_width_) {
    rss_.back().bytes = std::max(rss_.back().bytes, bytes);
    return;
  }
  rss_.push_back({time_ns, bytes});
  if (rss_.size() < 2 * kPoints) return;
  // Every second sample goes, the higher value stays.
  for (size_t i = 0; i + 1 < rss_.size(); i += 2) {
    rss_[i / 2] = {rss_[i].time_ns, std::max(rss_[i].bytes, rss_[i + 1].bytes)};
  }
  rss_.resize(rss_.size() / 2);
  rss_width_ = (rss_.back().time_ns - rss_.front().time_ns) / kPoints;
}

std::vector<TimelinePoint> Timeline::finish(uint64_t time_ns, const Amount& live, const Amount& allocated) {
  if (open_) points_.push_back(current_);
  const TimelinePoint last{time_ns, live.bytes, live.count, allocated.bytes, allocated.count, 0};
  if (open_ && (points_.back().time_ns != time_ns || points_.back().live_bytes != live.bytes)) points_.push_back(last);
  for (const Rss& sample : rss_) {
    if (points_.empty()) break;
    auto it = std::lower_bound(points_.begin(), points_.end(), sample.time_ns,
                               [](const TimelinePoint& p, uint64_t t) { return p.time_ns < t; });
    if (it == points_.end()) --it;
    if (it != points_.begin() && sample.time_ns - std::prev(it)->time_ns < it->time_ns - sample.time_ns) --it;
    it->rss_bytes = std::max(it->rss_bytes, sample.bytes);
  }
  open_ = false;
  return std::move(points_);
}

}  // namespace traceaf::reader
