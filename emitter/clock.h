// The recorder's clock: CLOCK_MONOTONIC in ns through the vDSO, never through the PLT (libfaketime and the like would
// answer). The vDSO's read is ordered after earlier
// loads, so the stamp of a birth can't precede the death, on another thread, that made room for it.
#pragma once

#include <cstdint>

namespace traceaf::emitter {

inline constexpr uint64_t kClockFrequency = 1000000000;  // timestamp units per second

// Finds the vDSO's function. Until it has run, and where there is no vDSO, clock_now() makes a system call.
void clock_init();
uint64_t clock_now();
uint64_t clock_wall_ns();

}  // namespace traceaf::emitter
