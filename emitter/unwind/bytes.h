// A reader over a bounded piece of memory for the encodings of DWARF. Reading past the end sets `ok` to false and gives
// zeros, so callers check once at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace traceaf::emitter::unwind {

struct Bytes {
  const uint8_t* at = nullptr;
  const uint8_t* end = nullptr;
  bool ok = true;

  size_t left() const { return static_cast<size_t>(end - at); }
  bool done() const { return !ok || at == end; }
  uintptr_t address() const { return reinterpret_cast<uintptr_t>(at); }

  template <typename T>
  T fixed() {
    T value{};
    if (at == nullptr || left() < sizeof(T)) {
      fail();
      return value;
    }
    std::memcpy(&value, at, sizeof(T));
    at += sizeof(T);
    return value;
  }
  uint8_t u8() { return fixed<uint8_t>(); }

  void skip(uint64_t n) {
    if (n > left()) {
      fail();
    } else {
      at += n;
    }
  }
  // The next `n` bytes as a reader of their own.
  Bytes take(uint64_t n) {
    Bytes part{at, at, ok};
    skip(n);
    part.end = ok ? at : part.at;
    part.ok = ok;
    return part;
  }

  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint8_t byte = u8();
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }
  int64_t sleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const uint8_t byte = u8();
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
  }

  void fail() {
    ok = false;
    at = end;
  }
};

}  // namespace traceaf::emitter::unwind
