// Entry points of births (see entries.inc).
#pragma once

#include <cstdint>
#include <string_view>

namespace traceaf::wire {

enum class Entry : uint8_t {
#define TRACEAF_ENTRY(number, id, name) k_##id = number,
#include "emitter/wire/entries.inc"
#undef TRACEAF_ENTRY
};

constexpr std::string_view entry_name(uint64_t entry) {
  switch (entry) {
#define TRACEAF_ENTRY(number, id, name) \
  case number:                          \
    return name;
#include "emitter/wire/entries.inc"
#undef TRACEAF_ENTRY
    default:
      return "?";
  }
}

// True for births that are the second half of a move.
constexpr bool is_move(uint64_t entry) {
  return entry == static_cast<uint64_t>(Entry::k_realloc) || entry == static_cast<uint64_t>(Entry::k_reallocarray);
}

}  // namespace traceaf::wire
