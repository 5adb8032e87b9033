// Whole batches for the output: framing, and tables that the flusher writes itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emitter/section.h"
#include "emitter/wire/events.h"
#include "emitter/wire/rows.h"

namespace traceaf::emitter {

// Frames `body` as an EventBatch (or, with `experimental`, as a batch of the AllocFree experiment) and gives it to the
// sink.
void write_batch(bool experimental, uint64_t gen, uint64_t m, uint64_t time, const void* body, size_t bytes);

// Collects entries of one kind and writes a batch whenever the next one would not fit. Uses one static buffer: only one
// writer exists at a time (flush lock).
class TableWriter {
 public:
  TableWriter(uint8_t kind, uint64_t gen, uint64_t time);
  ~TableWriter() { flush(); }
  TableWriter(const TableWriter&) = delete;
  TableWriter& operator=(const TableWriter&) = delete;

  // Starts an entry that will need at most `bytes`.
  void entry(size_t bytes);
  void number(uint64_t value);
  void text(const char* s, size_t length);
  void row(wire::Row tag, const RowBytes& payload, const char* text = nullptr, size_t length = 0);

 private:
  void flush();
  uint8_t kind_;
  uint64_t gen_;
  uint64_t time_;
  size_t used_ = 0;
};

}  // namespace traceaf::emitter
