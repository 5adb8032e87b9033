// How one frame leads to its caller, packed into 64 bits together with the module that the rule was read from.
//
//   bit 0       set in every rule, so that 0 means "none"
//   bits 1..3   Kind          bits 4..5   BpRule
//   bits 8..19  where the caller's rbp was saved, in words, signed
//   bits 20..43 offset of the CFA, in words, signed
//   bits 44..63 module id
#pragma once

#include <cstdint>

#include "emitter/unwind/module_record.h"

namespace traceaf::emitter::unwind {

enum class Kind : uint32_t {
  kNone = 0,     // code that no table describes; also what an empty rule says
  kRsp = 1,      // CFA = rsp + offset, return address at CFA - 8
  kRbp = 2,      // CFA = rbp + offset, return address at CFA - 8
  kRealign = 3,  // CFA = *(rbp + offset), return address at CFA - 8
  kSignal = 4,   // the kernel's rt_sigframe: rip, rsp and rbp are in the ucontext at rsp
  kEnd = 5,      // the outermost frame
  kSlow = 6      // does not fit: the tables are read again at each use
};

enum class BpRule : uint32_t { kKept = 0, kAtCfa = 1, kAtRbp = 2, kLost = 3 };

struct Rule {
  uint64_t bits = 0;

  static Rule make(Kind kind, uint32_t module, BpRule bp = BpRule::kKept, int64_t cfa = 0, int64_t saved = 0) {
    return {1 | static_cast<uint64_t>(kind) << 1 | static_cast<uint64_t>(bp) << 4 |
            (static_cast<uint64_t>(saved / 8) & 0xfff) << 8 | (static_cast<uint64_t>(cfa / 8) & 0xffffff) << 20 |
            static_cast<uint64_t>(module) << 44};
  }
  // Whether make() can hold the two byte offsets.
  static bool fits(int64_t cfa, int64_t saved) {
    constexpr int64_t kCfaLimit = int64_t{8} << 23, kSavedLimit = int64_t{8} << 11;
    return cfa % 8 == 0 && saved % 8 == 0 && cfa >= -kCfaLimit && cfa < kCfaLimit && saved >= -kSavedLimit &&
           saved < kSavedLimit;
  }
  explicit operator bool() const { return bits != 0; }
  Kind kind() const { return static_cast<Kind>(bits >> 1 & 7); }
  BpRule bp() const { return static_cast<BpRule>(bits >> 4 & 3); }
  int64_t cfa() const { return (static_cast<int64_t>(bits << 20) >> 37) & ~int64_t{7}; }
  int64_t saved() const { return (static_cast<int64_t>(bits << 44) >> 49) & ~int64_t{7}; }
  uint32_t module() const { return static_cast<uint32_t>(bits >> 44); }
};
static_assert(kModuleIdBits == 64 - 44);

// The registers that walking needs; sp is the value at the return from the call.
struct Registers {
  uintptr_t ip;
  uintptr_t sp;
  uintptr_t bp;
};

enum class Outcome : uint32_t { kStepped, kEnd, kNoCfi, kUnreadable };

}  // namespace traceaf::emitter::unwind
