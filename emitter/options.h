// TRACEALLOCFREE parsed: the state asked for and the settings of the recorder.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emitter/wire/tail.h"

namespace traceaf::emitter {

enum class Stacks : uint8_t { kAlloc, kBoth, kNone };

struct Options {
  static constexpr size_t kPatternRoom = 1024;
  wire::RecordState state = wire::RecordState::kOff;
  char out[kPatternRoom] = "traceaf.%e.%p.traf";
  bool compress = true;
  uint64_t buffer_bytes = uint64_t{32} << 20;
  uint64_t generation_ns = 1000000000;
  uint64_t generation_bytes = uint64_t{64} << 20;
  uint32_t depth = 1024;
  Stacks stacks = Stacks::kAlloc;
  bool follow = true;
  bool guard = false;
};

// What was wrong with the text: the offending item and what would be accepted.
struct OptionError {
  char item[128] = "";
  const char* accepted = nullptr;  // nullptr: no error
};

// Reads `text` (nullptr: unset, which means off) into `*options`, whose fields keep their values where the text does
// not name them. On an error `*options` is unspecified. Allocates nothing.
OptionError parse_options(const char* text, Options* options);

}  // namespace traceaf::emitter
