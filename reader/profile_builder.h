// From generations in order to a Profile: rows, heap, spans, threads and the timeline together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "reader/contexts.h"
#include "reader/heap_model.h"
#include "reader/order.h"
#include "reader/profile.h"
#include "reader/span_model.h"
#include "reader/tail.h"
#include "reader/timeline.h"
#include "reader/trace.h"

namespace traceaf::reader {

class ProfileBuilder {
 public:
  // `tail`: that of the trace, or nullptr.
  explicit ProfileBuilder(const TailState* tail);
  // Takes in the next generation. Returns the first malformed event or row of it; all others count.
  Failure add(const Generation& gen);
  [[nodiscard]] const Contexts& contexts() const { return contexts_; }
  // The generation of the last AllocFree event, 0 when there was none.
  [[nodiscard]] uint64_t last_event_generation() const { return last_event_generation_; }
  // Everything but Profile::ending.
  Profile finish();

 private:
  void set_clock(const Generation& gen);
  void apply_markers(const Generation& gen);
  void count_structure(const Generation& gen);
  void visit(uint32_t slot, const Event& event, uint64_t time);
  [[nodiscard]] uint64_t ns(uint64_t time) const {
    if (time >= origin_) [[likely]]
      return origin_ns_ + scale_.ns(time - origin_);
    return origin_ns_ - std::min(origin_ns_, scale_.ns(origin_ - time));
  }

  const TailState* tail_;
  Profile profile_;
  Contexts contexts_;
  HeapModel heap_;
  SpanModel spans_;
  Timeline timeline_;

  // The clock: timestamp origin_ is origin_ns_.
  TimeScale scale_;
  uint64_t frequency_ = 0, origin_ = 0, origin_ns_ = 0;
  Sync sync_;         // of the last generation
  uint64_t now_ = 0;  // of the last event; never goes back
  std::optional<uint64_t> first_;
  uint64_t last_event_generation_ = 0;

  // Of the present generation.
  const Generation* gen_ = nullptr;
  HeapInfo info_;
  std::vector<uint32_t> slot_threads_;
  uint64_t allocfree_ = 0;
  std::optional<uint64_t> gen_first_;
  bool recording_ = true;  // the last marker was not off or standby
};

}  // namespace traceaf::reader
