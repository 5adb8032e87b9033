// Timed events from bytes: the inner loop of the reader.
#pragma once

#include <array>
#include <cstdint>

#include "emitter/wire/events.h"
#include "emitter/wire/varint.h"

namespace traceaf::reader {

// A timed event. `args` are those behind dt.
struct Event {
  uint64_t time = 0;
  std::array<uint64_t, 4> args{};
  uint8_t type = 0;
};

// Integers behind the type byte of a timed event, dt included; 0 for a byte that begins no timed event.
inline constexpr std::array<uint8_t, 256> kTimedIntegers = [] {
  std::array<uint8_t, 256> out{};
  for (const auto& spec : wire::kEvents) {
    if (wire::is_timed(spec)) out[spec.number] = static_cast<uint8_t>(wire::argument_count(spec));
  }
  return out;
}();

inline constexpr uint8_t kFirstAllocFree = static_cast<uint8_t>(wire::Ev::kSpan);

// Rank of events at one timestamp: what exists, then what dies, then what is born.
inline constexpr std::array<uint8_t, 256> kTieRank = [] {
  std::array<uint8_t, 256> out{};
  using wire::Ev;
  for (const Ev ev : {Ev::kSpanFree, Ev::kHeapObjectFree, Ev::kGoroutineStackFree}) out[static_cast<uint8_t>(ev)] = 1;
  for (const Ev ev : {Ev::kSpanAlloc, Ev::kHeapObjectAlloc, Ev::kGoroutineStackAlloc})
    out[static_cast<uint8_t>(ev)] = 2;
  return out;
}();

enum class DecodeFault : uint8_t { kNone, kNoEvent, kNotTimed, kCut, kTooLong, kTimeOverflow, kNoThread };

// As wire::get_varint, but at least wire::kMaxVarint bytes must be readable at `at`.
inline const uint8_t* get_varint_unchecked(const uint8_t* at, uint64_t* value) {
  uint64_t byte = *at++;
  if (byte < 0x80) [[likely]] {
    *value = byte;
    return at;
  }
  uint64_t result = byte & 0x7f;
  for (unsigned shift = 7; shift < 63; shift += 7) {
    byte = *at++;
    result |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      *value = result;
      return at;
    }
  }
  byte = *at++;
  if (byte > 1) return nullptr;
  *value = result | (byte << 63);
  return at;
}

// Decodes the event at `at` (at < end) whose predecessor in the batch had the timestamp `event.time`. Returns the first
// byte behind it, or nullptr and `*fault`.
inline const uint8_t* decode_event(const uint8_t* at, const uint8_t* end, Event& event, DecodeFault* fault) {
  const uint8_t type = *at++;
  const unsigned n = kTimedIntegers[type];
  if (n == 0) [[unlikely]] {
    *fault = wire::find_event(type) == nullptr ? DecodeFault::kNoEvent : DecodeFault::kNotTimed;
    return nullptr;
  }
  uint64_t values[5];
  if (static_cast<size_t>(end - at) >= 5 * wire::kMaxVarint) [[likely]] {
    for (unsigned i = 0; i < n; ++i) {
      at = get_varint_unchecked(at, &values[i]);
      if (at == nullptr) [[unlikely]] {
        *fault = DecodeFault::kTooLong;
        return nullptr;
      }
    }
  } else {
    for (unsigned i = 0; i < n; ++i) {
      const uint8_t* const behind = wire::get_varint(at, end, &values[i]);
      if (behind == nullptr) {
        *fault = static_cast<size_t>(end - at) >= wire::kMaxVarint ? DecodeFault::kTooLong : DecodeFault::kCut;
        return nullptr;
      }
      at = behind;
    }
  }
  if (__builtin_add_overflow(event.time, values[0], &event.time)) [[unlikely]] {
    *fault = DecodeFault::kTimeOverflow;
    return nullptr;
  }
  event.type = type;
  for (unsigned i = 1; i < n; ++i) event.args[i - 1] = values[i];
  return at;
}

}  // namespace traceaf::reader
