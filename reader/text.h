// The text form of a trace and back, without loss: one line an event, as Go's raw tools write it.
//
//   Trace Go1.26
//   EventBatch gen=1 m=7 time=1000 size=6
//   HeapObjectAlloc dt=0 object_id=2 type_id=1
//   ExperimentalBatch exp=1 gen=1 m=7 time=1000 size=12
//   	kind=2
//   	Site type_id=1 node=8 entry=1 align_log2=0 size=24
//   EndOfGeneration
//
// "name=value/width" is an integer in more bytes than it needs. What cannot be decoded becomes "Bytes data=..." lines,
// so bytes -> text -> bytes is the identity for every input with the right header. In text, "#" begins a comment line,
// and `size` may be left out (it is computed). docs/format.md has the grammar.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reader/status.h"

namespace traceaf::reader {

// Takes the next piece of output; false stops the conversion (the reader of a pipe went away).
using TextSink = std::function<bool(std::string_view)>;

// Writes the trace `file` (plain or zstd) as text. An error is returned when the file is no trace (nothing was written)
// or when part of it could not be decoded (everything was written, that part as Bytes lines).
Failure file_to_text(const std::string& file, const TextSink& sink);
Failure bytes_to_text(std::span<const uint8_t> trace, const std::string& name, const TextSink& sink);

// The plain bytes of a trace given as text. Errors name the place as "NAME:LINE".
Result<std::vector<uint8_t>> text_to_bytes(std::string_view text, const std::string& name);

}  // namespace traceaf::reader
