// Counters of loss and of work (see counters.inc).
#pragma once

#include <cstdint>
#include <string_view>

namespace traceaf::wire {

enum class Counter : uint8_t {
#define TRACEAF_COUNTER(number, id, meaning) k_##id = number,
#include "emitter/wire/counters.inc"
#undef TRACEAF_COUNTER
};

struct CounterSpec {
  uint8_t number;
  std::string_view name;
  std::string_view meaning;
};

inline constexpr CounterSpec kCounters[] = {
#define TRACEAF_COUNTER(number, id, meaning) {number, #id, meaning},
#include "emitter/wire/counters.inc"
#undef TRACEAF_COUNTER
};

inline constexpr unsigned kCounterSlots = 64;  // room in the tail header

}  // namespace traceaf::wire
