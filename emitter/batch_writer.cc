// Whole batches for the output (see batch_writer.h).
#include "emitter/batch_writer.h"

#include <cstring>

#include "emitter/sink.h"

namespace traceaf::emitter {
namespace {
constinit uint8_t g_body[wire::kMaxBatchBody] = {};
}

void write_batch(bool experimental, uint64_t gen, uint64_t m, uint64_t time, const void* body, size_t bytes) {
  uint8_t header[2 + 4 * wire::kMaxVarint];
  uint8_t* at = header;
  if (experimental) {
    *at++ = static_cast<uint8_t>(wire::Ev::kExperimentalBatch);
    *at++ = wire::kExperimentAllocFree;
  } else {
    *at++ = static_cast<uint8_t>(wire::Ev::kEventBatch);
  }
  at = wire::put_varint(at, gen);
  at = wire::put_varint(at, m);
  at = wire::put_varint(at, time);
  at = wire::put_varint(at, bytes);
  sink_bytes(header, static_cast<size_t>(at - header));
  sink_bytes(body, bytes);
}

TableWriter::TableWriter(uint8_t kind, uint64_t gen, uint64_t time) : kind_(kind), gen_(gen), time_(time) {}

void TableWriter::entry(size_t bytes) {
  if (used_ + bytes > sizeof(g_body)) flush();
  if (used_ == 0) g_body[used_++] = kind_;
}

void TableWriter::number(uint64_t value) {
  used_ = static_cast<size_t>(wire::put_varint(g_body + used_, value) - g_body);
}

void TableWriter::text(const char* s, size_t length) {
  number(length);
  memcpy(g_body + used_, s, length);
  used_ += length;
}

void TableWriter::row(wire::Row tag, const RowBytes& payload, const char* s, size_t length) {
  const size_t bytes = payload.size() + (s == nullptr ? 0 : wire::varint_size(length) + length);
  entry(bytes + 2 * wire::kMaxVarint);
  number(static_cast<uint64_t>(tag));
  number(bytes);
  memcpy(g_body + used_, payload.data(), payload.size());
  used_ += payload.size();
  if (s != nullptr) text(s, length);
}

void TableWriter::flush() {
  if (used_ > 1) write_batch(true, gen_, wire::kNoThread, time_, g_body, used_);
  used_ = 0;
}

}  // namespace traceaf::emitter
