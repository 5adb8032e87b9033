// The tables of a generation: which batch is what, Sync, info, types, strings, stacks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "reader/trace.h"

namespace traceaf::reader {

// Fills gen.threads and gen.experimental from gen.batches, and finds Sync and info where the generation has them.
// Fails where Go's reader does: two Syncs, a malformed Sync; or where ids would have no meaning: a malformed info.
Failure index_generation(Generation& gen, const std::string& file, std::optional<Sync>* sync,
                         std::optional<HeapInfo>* info);

// The structural batches hold table entries instead of timed events; the first byte of the body tells them.
bool is_structural(uint8_t first_byte);

// One entry of a structural batch: its event number and integers, and the bytes of a String.
struct TableEntry {
  uint8_t type = 0;
  std::span<const uint64_t> values;  // as in the event table; for a Stack followed by 4 integers a frame
  std::span<const uint8_t> text;     // of a String
  size_t at = 0;                     // offset of its first byte in the body
};
// What is wrong in a body: where, and a sentence.
struct TableFault {
  size_t at = 0;
  std::string message;
};
// Calls `visit` for each entry of a structural body, the opening byte included as an entry of its own.
std::optional<TableFault> for_each_entry(std::span<const uint8_t> body,
                                         const std::function<void(const TableEntry&)>& visit);

// The error of something in `batch` at byte `at` of its body.
Error batch_error(const Generation& gen, const Batch& batch, const std::string& file, size_t at, std::string message);

}  // namespace traceaf::reader
