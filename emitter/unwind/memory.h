// Reads of stack words that can never fault: direct inside the known stack, behind a probe of the page elsewhere.
#pragma once

#include <cstdint>
#include <cstring>

#include "emitter/unwind/unwind.h"

namespace traceaf::emitter::unwind {

// Asks the kernel whether the 8 bytes at `at` can be read; changes nothing. One system call.
bool probe_readable(uintptr_t at);

class Memory {
 public:
  explicit Memory(const Bounds& bounds)
      : lo_(bounds.lo),
        span_(bounds.hi >= bounds.lo + kWord && bounds.lo != 0 ? bounds.hi - bounds.lo - kWord + 1 : 0) {}

  // Whether the word at `at` lies in the known stack, where load() may be used.
  [[nodiscard]] bool inside(uintptr_t at) const { return at - lo_ < span_; }

  // Words of other frames are no objects of this function: sanitizers must not judge the access.
  __attribute__((no_sanitize("address", "thread"))) static uintptr_t load(uintptr_t at) {
    uintptr_t value = 0;
    __builtin_memcpy(&value, reinterpret_cast<const void*>(at), sizeof(value));
    return value;
  }

  // False when the word at `at` cannot be read.
  bool read(uintptr_t at, uintptr_t* value) {
    if (at - lo_ < span_) [[likely]] {
      *value = load(at);
      return true;
    }
    return read_probed(at, value);
  }

 private:
  static constexpr uintptr_t kWord = sizeof(uintptr_t);
  static constexpr unsigned kPages = 4;

  bool read_probed(uintptr_t at, uintptr_t* value);
  bool page_readable(uintptr_t page);

  const uintptr_t lo_;
  const uintptr_t span_;          // number of addresses from lo_ at which a whole word is inside the bounds
  uintptr_t pages_[kPages] = {};  // page numbers found readable in this walk
  unsigned next_ = 0;
};

}  // namespace traceaf::emitter::unwind
