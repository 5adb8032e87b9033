// The answers that most events need of the spans, inline: "nothing changes".
#pragma once

#include "emitter/spans/glibc.h"
#include "emitter/spans/state.h"
#include "emitter/spans/thread_cache.h"

namespace traceaf::emitter::spans {

// True when object_born would do nothing but find `p` in the range that the thread hit last.
inline bool born_in_known_span(const Cache& cache, uintptr_t p, size_t size) {
  return g_state.allocator.load(std::memory_order_relaxed) == Allocator::kGlibc &&
         (glibc::head(p) & glibc::kIsMmapped) == 0 && cache.words[0] == g_state.set.epoch() &&
         inside(p, size, cache.words[kFirstPair], cache.words[kFirstPair + 1]);
}

// True when the death of the live block `p` changes no span.
inline bool shares_its_span(uintptr_t p) {
  return g_state.allocator.load(std::memory_order_relaxed) == Allocator::kGlibc &&
         (glibc::head(p) & glibc::kIsMmapped) == 0;
}

}  // namespace traceaf::emitter::spans
