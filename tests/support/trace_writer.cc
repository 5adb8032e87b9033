// The writer DSL of the tests (see trace_writer.h).
#include "tests/support/trace_writer.h"

#include <string.h>
#include <zstd.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "emitter/wire/varint.h"

namespace traceaf::testing {

using wire::Ev;

static constexpr size_t kFullBatch = wire::kMaxBatchBody - 4096;  // room for the longest event or row of a scenario

void put(Bytes& out, uint64_t value) {
  uint8_t buffer[wire::kMaxVarint];
  out.insert(out.end(), buffer, wire::put_varint(buffer, value));
}

void put_text(Bytes& out, std::string_view text) {
  put(out, text.size());
  out.insert(out.end(), text.begin(), text.end());
}

static void append(Bytes& out, const Bytes& more) { out.insert(out.end(), more.begin(), more.end()); }

Bytes batch(uint64_t gen, uint64_t m, uint64_t time, const Bytes& body) {
  Bytes out{static_cast<uint8_t>(Ev::kEventBatch)};
  for (const uint64_t value : {gen, m, time, static_cast<uint64_t>(body.size())}) put(out, value);
  append(out, body);
  return out;
}

Bytes experimental_batch(uint64_t gen, uint64_t m, uint64_t time, const Bytes& body, uint8_t experiment) {
  Bytes out{static_cast<uint8_t>(Ev::kExperimentalBatch), experiment};
  for (const uint64_t value : {gen, m, time, static_cast<uint64_t>(body.size())}) put(out, value);
  append(out, body);
  return out;
}

Bytes event(Ev ev, uint64_t dt, std::initializer_list<uint64_t> arguments) {
  Bytes out{static_cast<uint8_t>(ev)};
  put(out, dt);
  for (const uint64_t argument : arguments) put(out, argument);
  return out;
}

Bytes zstd_frame(const Bytes& plain) {
  Bytes out(ZSTD_compressBound(plain.size()));
  const size_t size = ZSTD_compress(out.data(), out.size(), plain.data(), plain.size(), 3);
  if (ZSTD_isError(size) != 0) throw std::runtime_error("zstd");
  out.resize(size);
  return out;
}

// ---- a generation --------------------------------------------------------------------------------------------------

GenerationWriter::Stream& GenerationWriter::stream(uint64_t m, bool experimental, uint64_t time) {
  for (auto& s : streams_) {
    if (s.raw || !s.open || s.m != m || s.experimental != experimental) continue;
    if (s.body.size() < kFullBatch) return s;
    s.open = false;
  }
  Stream s;
  s.m = m;
  s.time = s.last = time;
  s.experimental = experimental;
  if (experimental) s.body.push_back(wire::kBatchRows);
  streams_.push_back(std::move(s));
  return streams_.back();
}

GenerationWriter& GenerationWriter::sync(uint64_t time, uint64_t frequency) {
  sync_time_ = time;
  Bytes body{static_cast<uint8_t>(Ev::kSync), static_cast<uint8_t>(Ev::kFrequency)};
  put(body, frequency);
  append(body,
         testing::event(Ev::kClockSnapshot, 0, {1'000'000 + time, 1'700'000'000 + number_, time % 1'000'000'000}));
  return raw(batch(number_, wire::kNoThread, time, body));
}

GenerationWriter& GenerationWriter::info(uint64_t min, uint64_t page, uint64_t align, uint64_t stack) {
  min_ = min;
  page_ = page;
  align_ = align;
  stack_ = stack;
  Bytes body{wire::kBatchInfo};
  for (const uint64_t value : {min, page, align, stack}) put(body, value);
  return raw(experimental_batch(number_, wire::kNoThread, sync_time_, body));
}

GenerationWriter& GenerationWriter::without_status(uint64_t m) {
  started_.insert(m);
  return *this;
}

GenerationWriter& GenerationWriter::event(uint64_t m, uint64_t time, Ev ev, std::initializer_list<uint64_t> arguments) {
  if (m != wire::kNoThread && started_.insert(m).second) {
    if (trace_.known_threads_.insert(m).second) {
      event(m, time, Ev::kGoCreateSyscall, {m});
    } else {
      event(m, time, Ev::kGoStatus, {m, m, wire::kGoStatusSyscall});
    }
  }
  Stream& s = stream(m, false, time);
  append(s.body, testing::event(ev, time - s.last, arguments));
  s.last = time;
  return *this;
}

GenerationWriter& GenerationWriter::alloc(uint64_t m, uint64_t time, uint64_t address, uint64_t type) {
  return event(m, time, Ev::kHeapObjectAlloc, {(address - min_) / align_, type});
}
GenerationWriter& GenerationWriter::free(uint64_t m, uint64_t time, uint64_t address) {
  return event(m, time, Ev::kHeapObjectFree, {(address - min_) / align_});
}
GenerationWriter& GenerationWriter::exists(uint64_t m, uint64_t time, uint64_t address, uint64_t type) {
  return event(m, time, Ev::kHeapObject, {(address - min_) / align_, type});
}

GenerationWriter& GenerationWriter::span(Ev ev, uint64_t m, uint64_t time, uint64_t base, uint64_t pages,
                                         uint64_t kind) {
  const uint64_t id = (base - min_) / page_;
  if (ev == Ev::kSpanFree) return event(m, time, ev, {id});
  return event(m, time, ev, {id, pages, kind});
}

GenerationWriter& GenerationWriter::stack(Ev ev, uint64_t m, uint64_t time, uint64_t lo, uint64_t order) {
  const uint64_t id = (lo - min_) / stack_;
  if (ev == Ev::kGoroutineStackFree) return event(m, time, ev, {id});
  return event(m, time, ev, {id, order});
}

GenerationWriter& GenerationWriter::thread_end(uint64_t m, uint64_t time) {
  return event(m, time, Ev::kGoDestroySyscall, {});
}

GenerationWriter& GenerationWriter::next_batch(uint64_t m) {
  for (auto& s : streams_) {
    if (s.m == m) s.open = false;
  }
  return *this;
}

GenerationWriter& GenerationWriter::row_bytes(uint64_t m, uint64_t tag, const Bytes& payload) {
  Stream& s = stream(m, true, sync_time_);
  put(s.body, tag);
  put(s.body, payload.size());
  append(s.body, payload);
  return *this;
}

GenerationWriter& GenerationWriter::row(uint64_t m, wire::Row tag, std::initializer_list<uint64_t> fields) {
  const reader::RowLayout& layout = *reader::find_row(static_cast<uint64_t>(tag));
  Stream& s = stream(m, true, sync_time_);
  Bytes payload;
  size_t i = 0;
  for (const uint64_t field : fields) put(payload, s.differences.encode(layout, i++, field));
  return row_bytes(m, static_cast<uint64_t>(tag), payload);
}

GenerationWriter& GenerationWriter::type(uint64_t id, uint64_t address, uint64_t size, std::string_view name) {
  for (const uint64_t value : {id, address, size, uint64_t{0}}) put(types_, value);
  put_text(types_, name);
  return *this;
}

GenerationWriter& GenerationWriter::site(uint64_t id, uint64_t node, wire::Entry entry, uint64_t size) {
  row(1, wire::Row::kSite, {id, node, static_cast<uint64_t>(entry), 0, size});
  return type(id, 0, size, "site");
}

GenerationWriter& GenerationWriter::node(uint64_t id, uint64_t parent, uint64_t module, uint64_t offset) {
  return row(1, wire::Row::kNode, {id, parent, module, offset});
}

GenerationWriter& GenerationWriter::module(uint64_t id, uint64_t flags, uint64_t start, uint64_t end,
                                           std::string_view path) {
  Bytes payload;
  for (const uint64_t value : {id, flags, start, end, start}) put(payload, value);
  put_text(payload, "\xab\xcd");
  put_text(payload, path);
  return row_bytes(1, static_cast<uint64_t>(wire::Row::kModule), payload);
}

GenerationWriter& GenerationWriter::thread(uint64_t m, uint64_t tid, uint64_t birth, uint64_t flags,
                                           std::string_view name) {
  Bytes payload;
  for (const uint64_t value : {m, tid, birth, flags, uint64_t{0x7000000}, uint64_t{0x800000}}) put(payload, value);
  put_text(payload, name);
  return row_bytes(m, static_cast<uint64_t>(wire::Row::kThread), payload);
}

GenerationWriter& GenerationWriter::process(uint64_t start_time, bool live_exact) {
  Bytes payload;
  for (const uint64_t value : {uint64_t{4242}, uint64_t{1}, start_time, uint64_t{1'700'000'000'000'000'000},
                               uint64_t{0}, uint64_t{live_exact}, uint64_t{1}, uint64_t{0}}) {
    put(payload, value);
  }
  put_text(payload, "/bin/app");
  put_text(payload, std::string_view("app\0-x\0", 7));
  put_text(payload, "1");
  put_text(payload, "0.1");
  put_text(payload, "host");
  return row_bytes(1, static_cast<uint64_t>(wire::Row::kProcess), payload);
}

GenerationWriter& GenerationWriter::counters(uint64_t time,
                                             std::initializer_list<std::pair<wire::Counter, uint64_t>> pairs) {
  Bytes payload;
  put(payload, time);
  put(payload, pairs.size());
  for (const auto& [counter, value] : pairs) {
    put(payload, static_cast<uint64_t>(counter));
    put(payload, value);
  }
  return row_bytes(1, static_cast<uint64_t>(wire::Row::kCounters), payload);
}

GenerationWriter& GenerationWriter::marker(uint64_t time, wire::MarkerKind kind) {
  return row(1, wire::Row::kMarker, {time, static_cast<uint64_t>(kind), 0});
}

GenerationWriter& GenerationWriter::end_row(uint64_t time, wire::EndReason reason) {
  return row(1, wire::Row::kEnd, {time, static_cast<uint64_t>(reason), 0});
}

GenerationWriter& GenerationWriter::raw(const Bytes& bytes) {
  Stream s;
  s.raw = true;
  s.body = bytes;
  streams_.push_back(std::move(s));
  return *this;
}

GenerationWriter& GenerationWriter::unfinished() {
  finished_ = false;
  return *this;
}

Bytes GenerationWriter::bytes() const {
  Bytes out;
  for (const auto& s : streams_) {
    if (s.raw) {
      append(out, s.body);
    } else if (s.experimental) {
      append(out, experimental_batch(number_, s.m, s.time, s.body));
    } else {
      append(out, batch(number_, s.m, s.time, s.body));
    }
  }
  if (!types_.empty()) {
    Bytes body{wire::kBatchTypes};
    append(body, types_);
    append(out, experimental_batch(number_, wire::kNoThread, sync_time_, body));
  }
  if (finished_) out.push_back(static_cast<uint8_t>(Ev::kEndOfGeneration));
  return out;
}

// ---- a trace -------------------------------------------------------------------------------------------------------

GenerationWriter& TraceWriter::generation(uint64_t number, uint64_t time, bool bare) {
  const auto [it, is_new] = generations_.try_emplace(number, *this, number);
  if (!is_new) return it->second;
  order_.push_back(&it->second);
  if (!bare) it->second.sync(time).info();
  return it->second;
}

Bytes TraceWriter::bytes() const {
  Bytes out(wire::kHeader, wire::kHeader + sizeof wire::kHeader);
  for (const auto* generation : order_) append(out, generation->bytes());
  return out;
}

Bytes TraceWriter::compressed() const {
  Bytes out = zstd_frame(Bytes(wire::kHeader, wire::kHeader + sizeof wire::kHeader));
  for (const auto* generation : order_) append(out, zstd_frame(generation->bytes()));
  return out;
}

// ---- a tail --------------------------------------------------------------------------------------------------------

TailWriter::TailWriter(uint32_t slots) : bytes_(wire::kTailHeaderBytes + slots * wire::kSlotBytes) {
  poke64(offsetof(wire::TailHeader, magic), wire::kTailMagic);
  poke32(offsetof(wire::TailHeader, version), wire::kTailVersion);
  poke32(offsetof(wire::TailHeader, header_bytes), wire::kTailHeaderBytes);
  poke32(offsetof(wire::TailHeader, slot_bytes), wire::kSlotBytes);
  poke32(offsetof(wire::TailHeader, slots), slots);
  poke32(offsetof(wire::TailHeader, pid), 4242);
  poke64(offsetof(wire::TailHeader, min_addr), kMin);
  poke64(offsetof(wire::TailHeader, page_size), kPage);
  clock(1'000'000'000, 0);
}

TailWriter& TailWriter::poke32(size_t offset, uint32_t value) {
  memcpy(bytes_.data() + offset, &value, sizeof value);
  return *this;
}
TailWriter& TailWriter::poke64(size_t offset, uint64_t value) {
  memcpy(bytes_.data() + offset, &value, sizeof value);
  return *this;
}
TailWriter& TailWriter::clock(uint64_t frequency, uint64_t start_time) {
  poke64(offsetof(wire::TailHeader, clock_freq), frequency);
  return poke64(offsetof(wire::TailHeader, start_time), start_time);
}
TailWriter& TailWriter::closed(uint64_t generation) { return poke64(offsetof(wire::TailHeader, closed), generation); }
TailWriter& TailWriter::ended(wire::EndReason reason) {
  return poke32(offsetof(wire::TailHeader, ended), static_cast<uint32_t>(reason));
}
TailWriter& TailWriter::counter(wire::Counter counter, uint64_t value) {
  return poke64(offsetof(wire::TailHeader, counters) + static_cast<size_t>(counter) * sizeof(uint64_t), value);
}

TailWriter& TailWriter::slot(uint32_t index, wire::SlotState state, wire::SlotKind kind, uint64_t gen, uint64_t m,
                             uint64_t time, const Bytes& body) {
  const size_t at = wire::kTailHeaderBytes + index * wire::kSlotBytes;
  poke32(at + offsetof(wire::SlotHeader, state), state);
  poke32(at + offsetof(wire::SlotHeader, kind), kind);
  poke64(at + offsetof(wire::SlotHeader, gen), gen);
  poke64(at + offsetof(wire::SlotHeader, m), m);
  poke64(at + offsetof(wire::SlotHeader, time), time);
  poke32(at + offsetof(wire::SlotHeader, used), static_cast<uint32_t>(body.size()));
  if (at + wire::kSlotHeaderBytes + body.size() > bytes_.size()) throw std::runtime_error("slot outside the tail");
  std::copy(body.begin(), body.end(), bytes_.begin() + static_cast<ptrdiff_t>(at + wire::kSlotHeaderBytes));
  return *this;
}

}  // namespace traceaf::testing
