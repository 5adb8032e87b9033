// The write section and the encoding of events and rows into slots (see section.h).
#include "emitter/section.h"

#include <linux/membarrier.h>
#include <cstring>

#include "emitter/counters.h"
#include "emitter/flusher.h"
#include "emitter/session.h"
#include "emitter/slots.h"
#include "emitter/sys.h"

namespace traceaf::emitter {

constinit std::atomic<uint64_t> g_generation{0};
constinit std::atomic<uint64_t> g_generation_due{~uint64_t{0}};
constinit std::atomic<uint64_t> g_generation_bytes{0};

RowBytes& RowBytes::text(const char* s, size_t length) {
  if (used_ + wire::kMaxVarint > kRoom) return *this;
  const size_t room = kRoom - used_ - 2;  // a length below 2^14 takes two bytes at most
  if (length > room) length = room;
  number(length);
  memcpy(bytes_ + used_, s, length);
  used_ += length;
  return *this;
}

#ifdef __SANITIZE_THREAD__
constexpr bool kMayUseMembarrier = false;  // ThreadSanitizer does not know what it does
#else
constexpr bool kMayUseMembarrier = true;
#endif

constinit std::atomic<bool> g_membarrier{false};

void sections_init() {
  constexpr long kRegister = MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
  g_membarrier.store(kMayUseMembarrier && !sys::failed(sys::call(SYS_membarrier, kRegister, 0, 0)),
                     std::memory_order_relaxed);
}

void sections_see_generation() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!g_membarrier.load(std::memory_order_relaxed)) return;
  if (!sys::failed(sys::call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))) return;
  // A filter that was installed since refuses it: sections are entered with a locked instruction from now on. Stores
  // of those that were entered without one reach us in the time that a processor may hold a store back, far less than
  // this.
  g_membarrier.store(false, std::memory_order_seq_cst);
  sys::sleep_ns(2000 * 1000);
}

Section Section::enter_nested(ThreadRecord* record) {
  // In a signal handler, or inside a move. The outermost generation stays in force. When the handler hit the outermost
  // entry before it knew its generation, or an append, the event can't be written: it is counted.
  const uint64_t gen = record->section_gen.load(std::memory_order_relaxed);
  if (gen == 0 || gen == kStandbySection || record->busy != 0) {
    count(wire::Counter::k_nested_events);
    return {nullptr, 0};
  }
  record->writing.store(record->writing.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return {record, gen};
}

Section Section::enter_unwritten(ThreadRecord* record) {
  if (gate() == kGateStandby) {
    record->section_gen.store(kStandbySection, std::memory_order_relaxed);
    return {record, 0};
  }
  record->writing.store(0, std::memory_order_release);
  return {nullptr, 0};
}

Section Section::enter_rarely() {
  ThreadRecord* record = thread_record();
  if (record == nullptr) return {nullptr, 0};
  return enter_record(record);
}

Section Section::enter_as(ThreadRecord* record) { return enter_record(record); }

Section Section::resume() {
  ThreadRecord* record = thread_record_if_known();
  const uint64_t gen = record->section_gen.load(std::memory_order_relaxed);
  return {record, gen == kStandbySection ? 0 : gen};
}

void count_events(ThreadRecord& r) {
  count(wire::Counter::k_events, r.uncounted_events.load(std::memory_order_relaxed));
  r.uncounted_events.store(0, std::memory_order_relaxed);
}

Stream* Section::refill(wire::SlotKind kind, uint64_t time) {
  ThreadRecord& r = *record_;
  Stream& stream = r.streams[gen_ & 1][kind];
  if (stream.gen == gen_ && stream.slot != nullptr) {
    slot_seal(stream.slot);
    stream.drop_slot();
  }
  stream.gen = gen_;
  count_events(r);
  clock_calibrate(gen_);
  if (time <= r.last_base[kind]) time = r.last_base[kind] + 1;
  wire::SlotHeader* slot = slot_claim(kind, gen_, r.m, time);
  if (slot == nullptr) slot = flusher_wait_for_slot(kind, gen_, r.m, time);
  if (slot == nullptr) return nullptr;
  r.last_base[kind] = time;
  stream.slot = slot;
  stream.at = slot_body(slot);
  stream.end = stream.at + wire::kSlotBody;
  stream.last = stream.end - wire::kMaxEventBytes;
  stream.last_time = time;
  g_generation_bytes.fetch_add(wire::kSlotBody, std::memory_order_relaxed);
  flusher_slot_taken();
  stream.last_node = stream.last_site = {0, 0};
  if (kind == wire::kSlotRows) *stream.at++ = wire::kBatchRows;
  return &stream;
}

Stream* Section::stream_with_room(wire::SlotKind kind, uint64_t time, size_t bytes) {
  Stream& stream = record_->streams[gen_ & 1][kind];
  if (stream.gen == gen_ && stream.slot != nullptr && static_cast<size_t>(stream.end - stream.at) >= bytes)
    return &stream;
  return refill(kind, time);
}

// The first event of a thread in a generation tells Go's reader which goroutine runs on it (mapping 2 of the format
// document), and a Thread row tells ours who it is.
bool Section::append_status(Stream* stream, uint64_t time) {
  ThreadRecord& r = *record_;
  uint8_t* at = stream->at;
  if (!r.announced) {
    *at++ = static_cast<uint8_t>(wire::Ev::kGoCreateSyscall);
    at = wire::put_varint(at, stream->advance(r, time));
    at = wire::put_varint(at, r.m);
    r.announced = true;
  } else {
    *at++ = static_cast<uint8_t>(wire::Ev::kGoStatus);
    at = wire::put_varint(at, stream->advance(r, time));
    at = wire::put_varint(at, r.m);
    at = wire::put_varint(at, r.m);
    at = wire::put_varint(at, wire::kGoStatusSyscall);
  }
  stream->at = at;
  r.status_gen = gen_;
  stream->commit();
  RowBytes row;
  row.number(r.m).number(static_cast<uint64_t>(r.tid)).number(r.birth_time).number(r.flags);
  row.number(r.stack_lo).number(r.stack_bytes).text("", 0);
  r.busy = 0;
  this->row(wire::Row::kThread, row);
  r.busy = 1;
  return true;
}

Stream* Section::room_for_event(uint64_t time) {
  ThreadRecord& r = *record_;
  if (r.busy != 0) {
    count(wire::Counter::k_nested_events);
    return nullptr;
  }
  if (time >= g_generation_due.load(std::memory_order_relaxed)) flusher_due();
  Busy busy(r);
  Stream* stream = stream_with_room(wire::kSlotEvents, time, wire::kMaxEventBytes);
  if (stream != nullptr && r.status_gen != gen_) {
    append_status(stream, time);
    stream = stream_with_room(wire::kSlotEvents, time, wire::kMaxEventBytes);
  }
  if (stream == nullptr) {
    // Every slot is taken and the wait was in vain: the program goes on, this event is missing from the trace.
    count(wire::Counter::k_lost_events);
    return nullptr;
  }
  busy.stay();
  return stream;
}

// Makes the record busy and finds room for a row of up to `bytes`; null, counted, when it is lost.
Stream* Section::room_for_row(size_t bytes) {
  ThreadRecord& r = *record_;
  Stream* stream = nullptr;
  if (r.busy == 0 && bytes < wire::kSlotBody / 2) {
    Busy busy(r);
    stream = stream_with_room(wire::kSlotRows, r.last_time, bytes);
    if (stream != nullptr) busy.stay();
  }
  // The event that needs the row will be there without a name.
  if (stream == nullptr) count(wire::Counter::k_lost_rows);
  return stream;
}

bool Section::row(wire::Row tag, const RowBytes& payload, const char* text, size_t length) {
  if (text == nullptr) return row_bytes(tag, payload.data(), payload.size());
  uint8_t prefix[wire::kMaxVarint];
  const auto prefix_bytes = static_cast<size_t>(wire::put_varint(prefix, length) - prefix);
  const Piece pieces[] = {
      {payload.data(), payload.size()}, {prefix, prefix_bytes}, {reinterpret_cast<const uint8_t*>(text), length}};
  return append_row(tag, pieces, 3);
}

bool Section::row_after(wire::Row tag, uint64_t first, uint64_t second, const RowBytes& rest) {
  // The slot first: in a fresh one differences count from 0.
  Stream* stream = room_for_row(rest.size() + 4 * wire::kMaxVarint);
  if (stream == nullptr) return false;
  const Busy busy(*record_);
  Stream::Pair& last = tag == wire::Row::kNode ? stream->last_node : stream->last_site;
  uint8_t differences[2 * wire::kMaxVarint];
  uint8_t* end = wire::put_varint(differences, wire::zigzag(first - last.first));
  end = wire::put_varint(end, wire::zigzag(second - last.second));
  const auto bytes = static_cast<size_t>(end - differences);
  last = {first, second};
  uint8_t* at = wire::put_varint(stream->at, static_cast<uint64_t>(tag));
  at = wire::put_varint(at, bytes + rest.size());
  memcpy(at, differences, bytes);
  memcpy(at + bytes, rest.data(), rest.size());
  stream->at = at + bytes + rest.size();
  stream->commit();
  return true;
}

bool Section::row_bytes(wire::Row tag, const uint8_t* payload, size_t bytes) {
  const Piece piece{payload, bytes};
  return append_row(tag, &piece, 1);
}

bool Section::append_row(wire::Row tag, const Piece* pieces, unsigned n) {
  size_t bytes = 0;
  for (unsigned i = 0; i < n; ++i) bytes += pieces[i].size;
  Stream* stream = room_for_row(bytes + 2 * wire::kMaxVarint);
  if (stream == nullptr) return false;
  const Busy busy(*record_);
  uint8_t* at = stream->at;
  at = wire::put_varint(at, static_cast<uint64_t>(tag));
  at = wire::put_varint(at, bytes);
  for (unsigned i = 0; i < n; ++i) {
    memcpy(at, pieces[i].bytes, pieces[i].size);
    at += pieces[i].size;
  }
  stream->at = at;
  stream->commit();
  return true;
}

void seal_streams(ThreadRecord* record, uint64_t gen) {
  for (Stream& stream : record->streams[gen & 1]) {
    if (stream.gen != gen || stream.slot == nullptr) continue;
    slot_seal(stream.slot);
    stream.drop_slot();
  }
}

}  // namespace traceaf::emitter
