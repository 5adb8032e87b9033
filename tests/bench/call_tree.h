// Brings a benchmark's work to the bottom of a stack of a given depth that is the same each time, or differs in its
// innermost frames.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>

namespace traceaf::bench {

inline constexpr int kTurning = 4;  // innermost frames that differ from call to call on a changing stack
inline constexpr unsigned kOuterPath = 0x5a5a5a5a;

// What Work has beside its once(), which is timed.
struct Turns {
  benchmark::State* state;
  bool changing;
  uint32_t random = 1;
};

// `left` more frames; which of two functions stands at each comes from the bits of `path`. `deep`: below the turning
// point of a changing stack.
template <int kSide, typename Work>
[[gnu::noinline]] void go_down(Work& work, int left, unsigned path, bool deep) {
  const auto below = [&](unsigned way, bool inner) {
    way % 2 == 0 ? go_down<0>(work, left - 1, way / 2, inner) : go_down<1>(work, left - 1, way / 2, inner);
  };
  if (left == 0 && deep) {
    work.once();
  } else if (left == 0) {
    for (auto _ : *work.state) work.once();
  } else if (work.changing && !deep && left == kTurning) {
    for (auto _ : *work.state) {
      work.random = work.random * 1664525 + 1013904223;
      below(work.random >> 28, true);
    }
  } else {
    below(path, deep);
  }
  benchmark::ClobberMemory();  // so that no call becomes a jump
}

}  // namespace traceaf::bench
