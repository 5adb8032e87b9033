// The counters of loss and work (wire/counters.inc). They live in the tail header while a tail is mapped, so that they
// survive kill -9, and in a static array before.
#pragma once

#include <atomic>
#include <cstdint>

#include "emitter/wire/counters.h"

namespace traceaf::emitter {

extern std::atomic<uint64_t>* g_counters;

inline void count(wire::Counter counter, uint64_t n = 1) {
  g_counters[static_cast<unsigned>(counter)].fetch_add(n, std::memory_order_relaxed);
}
inline void set_counter(wire::Counter counter, uint64_t value) {
  g_counters[static_cast<unsigned>(counter)].store(value, std::memory_order_relaxed);
}
inline uint64_t counter(wire::Counter which) {
  return g_counters[static_cast<unsigned>(which)].load(std::memory_order_relaxed);
}
// Moves the counters to `to` (the header of a new tail), or back to the static array when null; values are kept.
void counters_move(std::atomic<uint64_t>* to);
// All to zero: a forked child counts for itself.
void counters_reset();

}  // namespace traceaf::emitter
