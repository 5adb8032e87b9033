// LEB128: the only integer encoding of the format, as in Go's trace v2.
#pragma once

#include <cstddef>
#include <cstdint>

namespace traceaf::wire {

// Longest encoding of a 64-bit value, in bytes.
inline constexpr size_t kMaxVarint = 10;

// Writes `value` at `out` (at least kMaxVarint bytes) and returns the first byte behind it.
inline uint8_t* put_varint(uint8_t* out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<uint8_t>(value) | 0x80;
    value >>= 7;
  }
  *out++ = static_cast<uint8_t>(value);
  return out;
}

// Bytes that put_varint would write for `value`.
inline constexpr size_t varint_size(uint64_t value) {
  size_t n = 1;
  while (value >= 0x80) {
    value >>= 7;
    ++n;
  }
  return n;
}

// Reads one integer from [at, end). Returns the first byte behind it, or nullptr when the input ends inside the
// integer or the integer does not fit 64 bits (more than 10 bytes, or a tenth byte above 1).
inline const uint8_t* get_varint(const uint8_t* at, const uint8_t* end, uint64_t* value) {
  uint64_t result = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (at == end) return nullptr;
    const uint8_t byte = *at++;  // NOLINT(clang-analyzer-core.NullDereference): null only where end is, too
    if (shift == 63 && byte > 1) return nullptr;
    result |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) {
      *value = result;
      return at;
    }
  }
  return nullptr;
}

}  // namespace traceaf::wire
