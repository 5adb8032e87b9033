// The scenarios of the golden traces: each is built by a function of its name and says what a reader must make of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/trace_writer.h"

namespace traceaf::golden {

struct TailSlotText {
  wire::SlotState state;
  wire::SlotKind kind;
  uint64_t gen, m, time;
  testing::Bytes body;
};

struct Golden {
  testing::Bytes trace;
  std::string failure;  // empty: the trace is whole and valid; else a regular expression that a complaint must match
  std::map<std::string, uint64_t> expect;  // summary numbers, worked out by hand
  // The tail beside the trace, when there is one.
  bool has_tail = false;
  uint64_t tail_closed = 0, tail_ended = 0;
  std::vector<TailSlotText> tail_slots;
};

struct Scenario {
  const char* name;
  Golden (*build)();
};

const std::vector<Scenario>& scenarios();

// The tail file of a golden, empty when it has none.
testing::Bytes tail_bytes(const Golden& golden);
// The golden as the text that is committed.
std::string golden_text(const Golden& golden);
// Back from the text. `wrong` says what cannot be read.
Golden parse_golden(const std::string& text, std::string* wrong);

}  // namespace traceaf::golden
