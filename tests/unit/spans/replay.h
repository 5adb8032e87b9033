// A Sink for tests: replays the events into a map and notes every one that contradicts what came before.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "emitter/spans/spans.h"

namespace traceaf::emitter::spans::test {

inline bool same(const Span& a, const Span& b) {
  return a.base == b.base && a.bytes == b.bytes && a.kind_class == b.kind_class && a.object_size == b.object_size &&
         a.source == b.source && a.inferred == b.inferred;
}

inline std::string text(const Span& s) {
  std::ostringstream out;
  out << std::hex << "[" << s.base << ", " << s.base + s.bytes << ") source " << static_cast<int>(s.source) << " class "
      << s.kind_class << " object " << s.object_size << (s.inferred ? " inferred" : "");
  return out.str();
}

// Events come one at a time (under the lock of the set), so this needs none.
class Replay {
 public:
  Sink sink() { return {this, &Replay::on_alloc, &Replay::on_free, &Replay::on_exists}; }

  const std::map<uintptr_t, Span>& spans() const { return spans_; }
  const std::vector<Span>& listed() const { return listed_; }
  size_t allocs() const { return allocs_; }
  size_t frees() const { return frees_; }
  size_t events() const { return allocs_ + frees_; }
  const Span* holding(uintptr_t at) const {
    auto next = spans_.upper_bound(at);
    if (next == spans_.begin()) return nullptr;
    const Span& span = std::prev(next)->second;
    return at < span.base + span.bytes ? &span : nullptr;
  }
  uint64_t bytes_in(uintptr_t lo, uintptr_t hi) const {
    uint64_t sum = 0;
    for (const auto& [base, span] : spans_) {
      const uintptr_t from = std::max(base, lo);
      const uintptr_t to = std::min<uintptr_t>(base + span.bytes, hi);
      if (from < to) sum += to - from;
    }
    return sum;
  }
  size_t count(wire::SpanSource source) const {
    return static_cast<size_t>(
        std::count_if(spans_.begin(), spans_.end(), [&](const auto& s) { return s.second.source == source; }));
  }
  // Nothing contradicted itself, and the set lists exactly what the events add up to.
  void expect_consistent() {
    EXPECT_TRUE(faults_.empty()) << faults_.size() << " faults, first: " << faults_.front();
    listed_.clear();
    Sink s = sink();
    snapshot(s);
    expect_equal(listed_);
  }
  void expect_equal(const std::vector<Span>& content) const {
    ASSERT_EQ(content.size(), spans_.size());
    auto replayed = spans_.begin();
    for (const Span& span : content) {
      ASSERT_TRUE(same(span, replayed->second)) << text(span) << " but the events say " << text(replayed->second);
      ++replayed;
    }
  }
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  static void on_alloc(void* self, const Span& span) {
    auto& r = *static_cast<Replay*>(self);
    ++r.allocs_;
    if (span.base % 4096 != 0 || span.bytes % 4096 != 0 || span.bytes == 0) r.faults_.push_back("shape " + text(span));
    if (r.bytes_in_fast(span.base, span.base + span.bytes)) r.faults_.push_back("overlap " + text(span));
    r.spans_[span.base] = span;
  }
  static void on_free(void* self, uintptr_t base) {
    auto& r = *static_cast<Replay*>(self);
    ++r.frees_;
    if (r.spans_.erase(base) == 0) r.faults_.push_back("free of unknown span " + std::to_string(base));
  }
  static void on_exists(void* self, const Span& span) { static_cast<Replay*>(self)->listed_.push_back(span); }
  bool bytes_in_fast(uintptr_t lo, uintptr_t hi) const {
    auto next = spans_.lower_bound(lo);
    if (next != spans_.end() && next->first < hi) return true;
    return next != spans_.begin() && std::prev(next)->second.base + std::prev(next)->second.bytes > lo;
  }

  std::map<uintptr_t, Span> spans_;
  std::vector<Span> listed_;
  std::vector<std::string> faults_;
  size_t allocs_ = 0, frees_ = 0;
};

// The kernel's list, as [start, end) with permissions and name.
struct Line {
  uintptr_t start, end;
  std::string permissions, name;
};
inline std::vector<Line> kernel_maps() {
  std::vector<Line> lines;
  std::ifstream in("/proc/self/maps");
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    Line l;
    char dash = 0;
    std::string offset, device, inode;
    fields >> std::hex >> l.start >> dash >> l.end >> l.permissions >> offset >> device >> inode >> l.name;
    lines.push_back(l);
  }
  return lines;
}
inline uint64_t kernel_bytes(uintptr_t lo, uintptr_t hi) {
  uint64_t sum = 0;
  for (const Line& l : kernel_maps()) {
    const uintptr_t from = std::max(l.start, lo);
    const uintptr_t to = std::min(l.end, hi);
    if (from < to) sum += to - from;
  }
  return sum;
}

// Begins and ends with an empty set; ends with the proof that the events added up to the set at every step.
class SpansTest : public testing::Test {
 protected:
  void SetUp() override {
    reset();
    set_allocator({nullptr, "libother.so", nullptr, nullptr});
    sink_ = replay_.sink();
  }
  void TearDown() override {
    replay_.expect_consistent();
    EXPECT_EQ(lost(), 0U);
    reset();
  }
  Replay replay_;
  Sink sink_{};
  Cache cache_{};
};

}  // namespace traceaf::emitter::spans::test
