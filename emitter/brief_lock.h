// A lock that is held for some ten nanoseconds, hundreds of thousands of times a second: taking it is one locked
// instruction, giving it back a plain store (Mutex::unlock() needs a second one to see whether somebody sleeps). Who
// finds it taken spins, then naps for growing times, so a holder that lost its processor gets it back. All-zero is
// free. Locked (lock.h) holds it for a scope.
#pragma once

#include <atomic>
#include <cstdint>

#include "emitter/lock.h"
#include "emitter/sys.h"

namespace traceaf::emitter {

class BriefLock {
 public:
  constexpr BriefLock() = default;
  void lock() {
    if (word_.exchange(1, std::memory_order_acquire) != 0) [[unlikely]]
      lock_taken();
  }
  void unlock() { word_.store(0, std::memory_order_release); }
  // For the child of a fork, where the owner is gone: whether it was held, and free from now on.
  bool reset() { return word_.exchange(0, std::memory_order_relaxed) != 0; }

 private:
  [[gnu::noinline]] void lock_taken() {
    constexpr unsigned kSpins = 100;
    constexpr uint64_t kFirstNap = 20 * 1000, kLongestNap = 1000 * 1000;
    uint64_t nap = kFirstNap;
    for (;;) {
      for (unsigned i = 0; i < kSpins; ++i) {
        __builtin_ia32_pause();
        if (word_.load(std::memory_order_relaxed) == 0 && word_.exchange(1, std::memory_order_acquire) == 0) return;
      }
      sys::sleep_ns(nap);
      if (nap < kLongestNap) nap *= 2;
    }
  }

  std::atomic<uint32_t> word_{0};
};

}  // namespace traceaf::emitter
