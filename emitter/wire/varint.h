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

// The same without a loop; writes up to 8 bytes behind the end of a shorter encoding.
inline uint8_t* put_varint_wide(uint8_t* out, uint64_t value) {
  if (value < 0x80) {
    *out = static_cast<uint8_t>(value);
    return out + 1;
  }
  if (value >> 56 != 0) return put_varint(out, value);
  const unsigned top = 63 - static_cast<unsigned>(__builtin_clzll(value));
  const unsigned bytes = (top * 37) >> 8;  // top / 7 for 7 <= top <= 55: bytes before the last one
  // Groups of 7 bits are moved apart by halves, quarters and eighths of the word.
  uint64_t x = (value & 0x0fffffff) | (value & 0x00fffffff0000000) << 4;
  x = (x & 0x00003fff00003fff) | (x & 0x0fffc0000fffc000) << 2;
  x = (x & 0x007f007f007f007f) | (x & 0x3f803f803f803f80) << 1;
  x |= 0x8080808080808080 >> (64 - 8 * bytes);
  __builtin_memcpy(out, &x, sizeof(x));
  return out + bytes + 1;
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

// Signed differences as small unsigned numbers: 0, -1, 1, -2 ... become 0, 1, 2, 3 ...
inline constexpr uint64_t zigzag(uint64_t difference) {
  return difference << 1 ^ (difference >> 63 ? ~uint64_t{0} : 0);
}
inline constexpr uint64_t unzigzag(uint64_t coded) { return coded >> 1 ^ (coded & 1 ? ~uint64_t{0} : 0); }

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
