// The recorder's ticks: they never fall from one generation to the next, and follow CLOCK_MONOTONIC.
#include "emitter/clock.h"

#include <ctime>

#include <gtest/gtest.h>

#include "emitter/wire/rows.h"

namespace traceaf::emitter {
namespace {

void pause_ms(long ms) {
  const timespec t{0, ms * 1000000};
  nanosleep(&t, nullptr);
}

TEST(Clock, TicksOfGenerationsFollowTheMonotonicClockAndNeverFall) {
  clock_init();
  uint64_t last = 0;
  for (uint64_t gen = 1; gen <= 40; ++gen) {
    pause_ms(3);
    const uint64_t begin = clock_begin_generation(gen);
    EXPECT_GE(begin + 1, last) << "generation " << gen;
    last = begin;
    for (int i = 0; i < 1000; ++i) {
      const uint64_t before = clock_ticks();
      const uint64_t now = clock_ticks(gen);
      const uint64_t after = clock_ticks();
      // A thread of the test may rest between two readings, so only the order is exact; 1 ms is far more than any scale
      // is off, and far less than a wrong one.
      constexpr uint64_t kNear = 1000000 / kNsPerTick;
      EXPECT_GE(now + kNear, before);
      EXPECT_LE(now, after + kNear);
      EXPECT_GE(now, last);
      last = now;
    }
  }
  if (clock_kind() == wire::kClockCounter) {
    EXPECT_NE(g_clock_scale[0].ratio.load(), 0u);  // the pauses are long enough to know the rate
  }
}

TEST(Clock, CounterIsTakenUpWithinAGeneration) {
  clock_init();
  const uint64_t begin = clock_begin_generation(1);
  EXPECT_EQ(g_clock_scale[1].ratio.load(), 0u);
  EXPECT_GE(clock_ticks(1), begin);
  pause_ms(3);
  const uint64_t before = clock_ticks(1);
  clock_calibrate(1);
  if (clock_kind() == wire::kClockCounter) {
    EXPECT_NE(g_clock_scale[1].ratio.load(), 0u);
  }
  EXPECT_GE(clock_ticks(1) + 1, before);
}

TEST(Clock, CounterThatRanAwayIsGivenUp) {
  clock_init();
  if (clock_kind() != wire::kClockCounter) GTEST_SKIP() << "the processor's counter is not used here";
  pause_ms(3);
  clock_begin_generation(1);
  // As after a move to a machine whose counter is ahead.
  g_clock_scale[1].ticks += 20 * 1000 * 1000 / kNsPerTick;
  clock_begin_generation(2);
  EXPECT_EQ(clock_kind(), wire::kClockMonotonic);
  EXPECT_EQ(g_clock_scale[0].ratio.load(), 0u);
}

}  // namespace
}  // namespace traceaf::emitter
