// Faults built in on purpose: `traceaf_broken_library` makes variants of the library with one of them, and the test
// suite must fail on each. In the real library everything here is empty.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace traceaf::preload::broken {

// Loses each 1000th death.
inline bool drops_death() {
#ifdef TRACEAF_BREAK_DROP_FREE
  static constinit std::atomic<uint32_t> count{0};
  return count.fetch_add(1, std::memory_order_relaxed) % 1000 == 999;
#else
  return false;
#endif
}

// Changes errno across a successful call.
inline void after_success(bool success) {
#ifdef TRACEAF_BREAK_ERRNO
  if (success) errno = EINTR;
#endif
}

// Gives the program another address than the allocator did.
inline void* shifted(void* p) {
#ifdef TRACEAF_BREAK_MEMALIGN
  return p == nullptr ? p : static_cast<char*>(p) + 16;
#else
  return p;
#endif
}

}  // namespace traceaf::preload::broken
