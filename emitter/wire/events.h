// Event numbers and the event table as data (see events.inc), with the fixed numbers of the batch framing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace traceaf::wire {

enum class Ev : uint8_t {
#define TRACEAF_EVENT(number, name, arguments) k##name = number,
#include "emitter/wire/events.inc"
#undef TRACEAF_EVENT
};

struct EventSpec {
  uint8_t number;
  std::string_view name;
  std::string_view arguments;  // space separated; "dt" first marks a timed event
};

inline constexpr EventSpec kEvents[] = {
#define TRACEAF_EVENT(number, name, arguments) {number, #name, arguments},
#include "emitter/wire/events.inc"
#undef TRACEAF_EVENT
};

// Number of integers behind the type byte of `spec`.
constexpr size_t argument_count(const EventSpec& spec) {
  if (spec.arguments.empty()) return 0;
  size_t n = 1;
  for (const char c : spec.arguments) n += c == ' ' ? 1 : 0;
  return n;
}

constexpr bool is_timed(const EventSpec& spec) { return spec.arguments.substr(0, 2) == "dt"; }

// Row of kEvents by event number, or -1 where the number is no event.
inline constexpr std::array<int16_t, 256> kEventIndex = [] {
  std::array<int16_t, 256> index{};
  for (auto& i : index) i = -1;
  int16_t row = 0;
  for (const auto& spec : kEvents) index[spec.number] = row++;
  return index;
}();

constexpr const EventSpec* find_event(uint8_t number) {
  return kEventIndex[number] < 0 ? nullptr : &kEvents[kEventIndex[number]];
}

// The 16 bytes that open a trace.
inline constexpr char kHeader[16] = {'g', 'o', ' ', '1', '.', '2', '6', ' ', 't', 'r', 'a', 'c', 'e', 0, 0, 0};
inline constexpr size_t kMaxBatchBody = 65536;        // Go's reader refuses a longer body
inline constexpr uint64_t kNoThread = ~uint64_t{0};   // `m` of structural batches
inline constexpr uint64_t kMaxStringLength = 1024;    // Go's reader refuses a longer string
inline constexpr size_t kMaxEventBytes = 1 + 5 * 10;  // type byte and at most five integers
inline constexpr uint64_t kGoStatusSyscall = 3;       // `gstatus` of a thread (mapping 2 of docs/format.md)

// The AllocFree experiment and the kinds of its experimental batches (first byte of the body).
inline constexpr uint8_t kExperimentAllocFree = 1;
inline constexpr uint8_t kBatchTypes = 0;  // Go's type table:  (typeID addr size ptrBytes nameLen name)*
inline constexpr uint8_t kBatchInfo = 1;   // Go's constants:   minHeapAddr pageSize minHeapAlign fixedStack
inline constexpr uint8_t kBatchRows = 2;   // ours:             (tag length payload)*, see rows.inc

// Divisors of the ids (the info batch carries them).
inline constexpr uint64_t kMinHeapAlign = 8;
inline constexpr uint64_t kFixedStack = 4096;
// `kind_class` of every span that is not segregated by size; a size-segregated one has (size class << 1).
inline constexpr uint64_t kSpanKindOther = 1;

}  // namespace traceaf::wire
