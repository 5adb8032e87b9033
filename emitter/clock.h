// The recorder's clocks.
//
// Stamps of the trace count ticks of 64 ns of CLOCK_MONOTONIC, as Go's own traces do: half the bytes of finer ones, on
// disk and in the compressor. They are read from the processor's counter where it is invariant and the kernel itself
// trusts it (9 ns), else from the vDSO (30 ns). The scale from counter to ticks is set anew with each generation so
// that it follows CLOCK_MONOTONIC without a step back; a section of a generation uses that generation's scale, and the
// two scales in use are never written while such a section is open.
//
// The counter is read without a fence: the stamp of a birth may be taken before the allocator's own loads, and so
// precede, by less than a microsecond, the death on another thread that made room for it. The reader puts that right:
// births and deaths at one address alternate. A fence would cost the program 12 ns an event.
#pragma once

#include <x86intrin.h>

#include <atomic>
#include <cstdint>

namespace traceaf::emitter {

inline constexpr uint64_t kNsPerTick = 64;
inline constexpr uint64_t kClockFrequency = 1000000000 / kNsPerTick;  // timestamp units (ticks) per second

struct ClockScale {
  std::atomic<uint64_t> ratio;  // ticks per count, times 2^64; 0: the counter is not (yet) used
  uint64_t count;               // at this count ...
  uint64_t ticks;               // ... these ticks had passed
};
extern ClockScale g_clock_scale[2];  // by parity of the generation

// Finds the vDSO's clock and decides whether the processor's counter will do. Until it has run, and where there is no
// vDSO, a clock costs a system call. Never through the PLT: libfaketime and the like would answer.
void clock_init();
// Whether the counter may be used; wire::kClock* of the Process row.
uint64_t clock_kind();
// CLOCK_MONOTONIC and the wall clock in ns.
uint64_t clock_ns();
uint64_t clock_wall_ns();
// The present in ticks, from the vDSO.
inline uint64_t clock_ticks() { return clock_ns() / kNsPerTick; }

// The present in ticks, for a section of generation `gen`.
inline uint64_t clock_ticks(uint64_t gen) {
  const ClockScale& scale = g_clock_scale[gen & 1];
  const uint64_t ratio = scale.ratio.load(std::memory_order_acquire);
  if (ratio == 0) [[unlikely]]
    return clock_ticks();
  const uint64_t passed = __rdtsc() - scale.count;
  if (static_cast<int64_t>(passed) < 0) [[unlikely]]
    return scale.ticks;
  return scale.ticks + static_cast<uint64_t>(static_cast<unsigned __int128>(passed) * ratio >> 64);
}

// Sets the scale of generation `gen`, to which no thread has access yet, and returns the present in ticks. One thread
// at a time.
uint64_t clock_begin_generation(uint64_t gen);
// In a section of `gen`, now and then: begins to use the counter once its rate is known well enough.
void clock_calibrate(uint64_t gen);

}  // namespace traceaf::emitter
