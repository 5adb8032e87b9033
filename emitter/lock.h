// A futex mutex without libc, valid when all-zero. Not recursive. Never held while foreign code runs (the next
// allocator, the loader, a callback), so it cannot take part in a lock cycle with the program.
#pragma once

#include <atomic>
#include <cstdint>

#include "emitter/sys.h"

namespace traceaf::emitter {

class Mutex {
 public:
  constexpr Mutex() = default;
  bool try_lock() {
    uint32_t free = 0;
    return word_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void lock() {
    if (try_lock()) return;
    // 2 = locked with sleepers. A timeout bounds what a lost wake-up could cost.
    while (word_.exchange(2, std::memory_order_acquire) != 0) {
      const timespec patience{0, 50 * 1000 * 1000};
      sys::futex_wait(&word_, 2, &patience, false);
    }
  }
  void unlock() {
    if (word_.exchange(0, std::memory_order_release) == 2) sys::futex_wake(&word_, 1, false);
  }
  // For the child of a fork, where the owner may be gone.
  void reset() { word_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<uint32_t> word_{0};
};

// Holds a Mutex or a BriefLock for a scope.
template <typename Lock>
class Locked {
 public:
  explicit Locked(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~Locked() { lock_.unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Lock& lock_;
};

}  // namespace traceaf::emitter
