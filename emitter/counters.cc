// Where the counters live (see counters.h).
#include "emitter/counters.h"

namespace traceaf::emitter {
namespace {
constinit std::atomic<uint64_t> g_early[wire::kCounterSlots];
}

constinit std::atomic<uint64_t>* g_counters = g_early;

void counters_move(std::atomic<uint64_t>* to) {
  if (to == nullptr) to = g_early;
  if (to == g_counters) return;
  // Another thread may count between copy and switch; such a count is lost. The tail is mapped and unmapped while one
  // thread records, or none.
  for (unsigned i = 0; i < wire::kCounterSlots; ++i)
    to[i].store(g_counters[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
  g_counters = to;
}

void counters_reset() {
  for (unsigned i = 0; i < wire::kCounterSlots; ++i) g_counters[i].store(0, std::memory_order_relaxed);
}

}  // namespace traceaf::emitter
