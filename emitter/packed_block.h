// What is known of a block beside its address, as one word: node, requested size, entry point and alignment.
#pragma once

#include <cstdint>

namespace traceaf::emitter {

struct PackedBlock {
  static constexpr unsigned kAlignBits = 5, kEntryBits = 5, kSizeBits = 27, kNodeBits = 27;
  static_assert(kAlignBits + kEntryBits + kSizeBits + kNodeBits == 64);
  static constexpr unsigned kEntryAt = kAlignBits, kSizeAt = kEntryAt + kEntryBits, kNodeAt = kSizeAt + kSizeBits;

  // 0 for a combination that has no word: one part is too large, or there is no entry point (they count from 1).
  static uint64_t pack(uint32_t node, uint8_t entry, uint8_t align_log2, uint64_t size) {
    if (size >> kSizeBits != 0 || node >> kNodeBits != 0 || align_log2 >> kAlignBits != 0 ||
        entry - 1u >= (1u << kEntryBits) - 1) [[unlikely]]
      return 0;
    return uint64_t{node} << kNodeAt | size << kSizeAt | uint64_t{entry} << kEntryAt | align_log2;
  }
  static uint32_t node(uint64_t word) { return static_cast<uint32_t>(word >> kNodeAt); }
  static uint64_t size(uint64_t word) { return word >> kSizeAt & ((uint64_t{1} << kSizeBits) - 1); }
  static uint8_t entry(uint64_t word) { return static_cast<uint8_t>(word >> kEntryAt & ((1u << kEntryBits) - 1)); }
  static uint8_t align_log2(uint64_t word) { return static_cast<uint8_t>(word & ((1u << kAlignBits) - 1)); }
};

}  // namespace traceaf::emitter
