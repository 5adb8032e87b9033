// The ranges that a thread's last objects lay in: what makes a birth in a known heap cost a few ns.
// Word 0 of the Cache is the epoch of the set at which it was filled, pairs (base, bytes) follow, the last hit first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emitter/spans/state.h"

namespace traceaf::emitter::spans {

inline constexpr unsigned kFirstPair = 2;
inline constexpr unsigned kWords = sizeof(Cache) / sizeof(uint64_t);

// [p, p + size) lies in [base, base + bytes); size 0 counts as 1.
inline bool inside(uintptr_t p, size_t size, uintptr_t base, uint64_t bytes) {
  return p - base < bytes && size <= bytes - (p - base);
}

inline bool in_cache(Cache& cache, uintptr_t p, size_t size) {
  uint64_t* w = cache.words;
  if (w[0] != g_state.set.epoch()) return false;
  if (inside(p, size, w[kFirstPair], w[kFirstPair + 1])) return true;
  for (unsigned i = kFirstPair + 2; i < kWords; i += 2) {
    if (!inside(p, size, w[i], w[i + 1])) continue;
    const uint64_t base = w[i];
    const uint64_t bytes = w[i + 1];
    memmove(w + kFirstPair + 2, w + kFirstPair, (i - kFirstPair) * sizeof(uint64_t));
    w[kFirstPair] = base;
    w[kFirstPair + 1] = bytes;
    return true;
  }
  return false;
}

// Under the lock, so that epoch and range belong together.
inline void remember(Cache& cache, const IntervalSet::Node* node) {
  uint64_t* w = cache.words;
  const uint64_t epoch = g_state.set.epoch();
  if (w[0] != epoch) memset(w, 0, sizeof cache.words);
  w[0] = epoch;
  // A heap that has grown takes the place of its shorter self.
  unsigned from = kFirstPair;
  while (from < kWords - 2 && w[from] != node->base) from += 2;
  memmove(w + kFirstPair + 2, w + kFirstPair, (from - kFirstPair) * sizeof(uint64_t));
  w[kFirstPair] = node->base;
  w[kFirstPair + 1] = node->end - node->base;
  g_state.set.mark_cached(node);
}

}  // namespace traceaf::emitter::spans
