// Spans as the events tell it: which are alive, how many there were at most, and what lives in them at the end.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>

#include "reader/contexts.h"
#include "reader/profile.h"

namespace traceaf::reader {

class SpanModel {
 public:
  explicit SpanModel(Profile& profile) : profile_(profile) {}

  // A span is there (`born`: as of now). A span that was alive at the same base is replaced.
  void add(uint64_t base, uint64_t bytes, uint64_t kind_class, const SpanInfoRow& info, bool born);
  void remove(uint64_t base);
  // Recording began again after a gap: the spans follow anew.
  void restart();
  // Moves the spans to the profile, each with the live blocks inside; a block counts for the innermost span that holds
  // it. Needs profile.live_blocks by address.
  void finish();

 private:
  void drop(const SpanStats& span);

  Profile& profile_;
  tsl::robin_map<uint64_t, SpanStats> spans_;  // by base
  Amount alive_;
};

}  // namespace traceaf::reader
