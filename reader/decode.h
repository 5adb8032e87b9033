// Timed events from bytes: the inner loop of the reader.
#pragma once

#include <emmintrin.h>
#include <string.h>

#include <array>
#include <cstdint>

#include "emitter/wire/events.h"
#include "emitter/wire/varint.h"

namespace traceaf::reader {

// A timed event. `args` are those behind dt; no event that is read here has more than three that mean something.
struct Event {
  uint64_t time = 0;
  std::array<uint64_t, 3> args{};
  uint32_t at = 0;  // offset of its first byte in the body of its batch
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

// Decodes the event at `at` (at < end) whose predecessor in the batch had the timestamp `time`; moves `time` on. Sets
// all of `event` but `at`. Returns the first byte behind it, or nullptr and `*fault`.
inline const uint8_t* decode_event(const uint8_t* at, const uint8_t* end, uint64_t& time, Event& event,
                                   DecodeFault* fault) {
  const uint8_t type = *at++;
  const unsigned n = kTimedIntegers[type];
  if (n == 0) [[unlikely]] {
    *fault = wire::find_event(type) == nullptr ? DecodeFault::kNoEvent : DecodeFault::kNotTimed;
    return nullptr;
  }
  uint64_t values[5] = {};
  for (unsigned i = 0; i < n; ++i) {
    const uint8_t* const behind = wire::get_varint(at, end, &values[i]);
    if (behind == nullptr) [[unlikely]] {
      *fault = static_cast<size_t>(end - at) >= wire::kMaxVarint ? DecodeFault::kTooLong : DecodeFault::kCut;
      return nullptr;
    }
    at = behind;
  }
  if (__builtin_add_overflow(time, values[0], &time)) [[unlikely]] {
    *fault = DecodeFault::kTimeOverflow;
    return nullptr;
  }
  event.type = type;
  event.time = time;
  event.args = {values[1], values[2], values[3]};
  return at;
}

// The seven-bit groups of the `bytes` (1 to 8) first bytes of `group`, put together.
inline uint64_t join_groups(uint64_t group, unsigned bytes) {
  group &= (~uint64_t{0} >> (64 - 8 * bytes)) & 0x7f7f7f7f7f7f7f7f;
  group = (group & 0x007f007f007f007f) | ((group & 0x7f007f007f007f00) >> 1);
  group = (group & 0x00003fff00003fff) | ((group & 0x3fff00003fff0000) >> 2);
  return (group & 0x0fffffff) | (group >> 4 & 0x00fffffff0000000);
}

// Which bytes of a window of 64 are what, by bit.
struct DecodeWindow {
  static constexpr size_t kBytes = 64;
  static constexpr size_t kReads = kBytes + 8;  // bytes that must be readable at its begin

  uint64_t integer_ends = 0;  // the byte is the last of an integer, if it belongs to one
  uint64_t objects = 0;       // the byte begins an event about an object, if it begins one
  uint64_t deaths = 0;        // and that is its death

  explicit DecodeWindow(const uint8_t* at) {
    constexpr auto kFirst = static_cast<char>(wire::Ev::kHeapObject);
    static_assert(static_cast<int>(wire::Ev::kHeapObjectFree) == static_cast<int>(wire::Ev::kHeapObject) + 2);
    const __m128i two = _mm_set1_epi8(2);
    for (unsigned i = 0; i < kBytes; i += 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + i));
      const __m128i kind = _mm_sub_epi8(bytes, _mm_set1_epi8(kFirst));
      integer_ends |= static_cast<uint64_t>(_mm_movemask_epi8(bytes) ^ 0xffff) << i;
      objects |= mask(_mm_cmpeq_epi8(_mm_min_epu8(kind, two), kind)) << i;
      deaths |= mask(_mm_cmpeq_epi8(kind, two)) << i;
    }
  }

 private:
  static uint64_t mask(__m128i bytes) { return static_cast<unsigned>(_mm_movemask_epi8(bytes)); }
};

inline constexpr size_t kFetchAhead = 1024;  // bytes; the processor's own prefetching stops at each page

// Decodes events about objects, which nearly all events of a trace are, without branches on the lengths of their
// integers: from `at` up to the first that is of another kind, malformed, has an integer of more than 8 bytes, or lies
// near `end`; at most up to `full`. decode_event() says what follows. Moves `at`, `time` and `out` on.
inline void decode_objects(const uint8_t* begin, const uint8_t*& at, const uint8_t* end, uint64_t& time, Event*& out,
                           const Event* full) {
  while (out != full && static_cast<size_t>(end - at) >= DecodeWindow::kReads) {
    __builtin_prefetch(at + kFetchAhead);
    const DecodeWindow window(at);
    const uint8_t* const base = at;
    uint64_t ends = window.integer_ends;  // of integers from `from` on
    unsigned from = 0;
    for (; out != full; ++out) {
      const uint64_t ends_id = ends & (ends - 1);
      const uint64_t ends_type = ends_id & (ends_id - 1);
      const bool death = (window.deaths >> from & 1) != 0;
      const uint64_t last = death ? ends_id : ends_type;
      if (last == 0) break;  // not all of it lies in the window
      const unsigned dt_at = from + 1;
      const unsigned id_at = static_cast<unsigned>(__builtin_ctzll(ends)) + 1;
      const unsigned type_at = static_cast<unsigned>(__builtin_ctzll(ends_id)) + 1;
      const unsigned next = static_cast<unsigned>(__builtin_ctzll(last)) + 1;
      const unsigned dt_more = id_at - dt_at - 1;  // bytes of an integer but the first
      const unsigned id_more = type_at - id_at - 1;
      const unsigned type_more = death ? 0 : next - type_at - 1;
      if ((window.objects >> from & 1) == 0 || (dt_more | id_more | type_more) > 7) [[unlikely]]
        return;
      uint64_t dt = 0;
      uint64_t id = 0;
      uint64_t type = 0;
      memcpy(&dt, base + dt_at, 8);
      memcpy(&id, base + id_at, 8);
      memcpy(&type, base + type_at, 8);
      uint64_t now = 0;
      if (__builtin_add_overflow(time, join_groups(dt, dt_more + 1), &now)) [[unlikely]]
        return;
      type = join_groups(type, type_more + 1);
      time = now;
      out->time = now;
      out->args = {join_groups(id, id_more + 1), death ? 0 : type, 0};
      out->at = static_cast<uint32_t>(base + from - begin);
      out->type = base[from];
      ends = last & (last - 1);
      from = next;
      at = base + from;
      if (from >= DecodeWindow::kBytes) [[unlikely]] {
        ++out;
        break;
      }
    }
    if (at == base) return;  // longer than a window: malformed
  }
}

}  // namespace traceaf::reader
