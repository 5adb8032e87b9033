// What FILE.tail holds: batches that may not have reached the output, and the recorder's state (emitter/wire/tail.h).
// The file may be written while it is read (a live program), cut or corrupt.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emitter/wire/tail.h"
#include "reader/status.h"

namespace traceaf::reader {

struct TailSlot {
  uint64_t gen = 0, m = 0, time = 0;
  uint64_t offset = 0;        // of its body in the tail file
  size_t begin = 0, end = 0;  // body in TailState::bytes
  bool rows = false;          // else events
};

struct TailState {
  uint32_t state = 0;  // wire::RecordState
  uint32_t ended = 0;  // wire::EndReason, 0: not ended
  uint32_t pid = 0;
  uint64_t clock_freq = 0, min_addr = 0, page_size = 0;
  uint64_t start_time = 0, start_mono_ns = 0, start_wall_ns = 0;
  uint64_t generation = 0, closed = 0;
  std::array<uint64_t, wire::kCounterSlots> counters{};
  std::vector<TailSlot> slots;  // with a body; by gen, m, kind, time
  std::vector<uint8_t> bytes;
  uint64_t damaged_slots = 0;  // left out because their headers make no sense
  Failure fault;               // the first such, or that the file is shorter than it says

  // Index of the first slot of a generation above `gen`.
  [[nodiscard]] size_t first_above(uint64_t gen) const;
};

// Reads a tail file. Fails when there is none, or its header is not one that we know.
Result<TailState> read_tail(const std::string& file);
Result<TailState> read_tail_bytes(std::span<const uint8_t> bytes, const std::string& name);

}  // namespace traceaf::reader
