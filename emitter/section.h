// The write section: the only way to write events and rows. acquire() ties the calling thread to one generation until
// release; while any thread is inside a generation, that generation is not closed. After the seed's
// traceAcquire/traceRelease: nested sections keep the generation of the outermost.
#pragma once

#include <atomic>
#include <cstdint>

#include "emitter/thread_record.h"
#include "emitter/wire/events.h"
#include "emitter/wire/rows.h"
#include "emitter/wire/varint.h"

namespace traceaf::emitter {

// The generation being written, 0 while nothing is written. Stored by the advancer only (sequentially consistent).
extern std::atomic<uint64_t> g_generation;
// When the current generation is due to end; a writer that passes it rings the flusher.
extern std::atomic<uint64_t> g_generation_due;
// Plain bytes that batches of the current generation hold so far.
extern std::atomic<uint64_t> g_generation_bytes;

// A row being built: fields are appended, the length is filled in by Section::row.
class RowBytes {
 public:
  static constexpr size_t kRoom = 480;
  RowBytes& number(uint64_t value) {
    if (used_ + wire::kMaxVarint <= kRoom)
      used_ = static_cast<size_t>(wire::put_varint(bytes_ + used_, value) - bytes_);
    return *this;
  }
  // Text is cut to what fits.
  RowBytes& text(const char* s, size_t length);
  [[nodiscard]] const uint8_t* data() const { return bytes_; }
  [[nodiscard]] size_t size() const { return used_; }

 private:
  uint8_t bytes_[kRoom];
  size_t used_ = 0;
};

class Section {
 public:
  // Enters for the calling thread. ok() is false when nothing is being written, the thread has no record, or a signal
  // interrupted this thread's own append (counted in nested_events).
  static Section enter();
  // Enters on behalf of a record whose thread is gone, or of the flusher.
  static Section enter_as(ThreadRecord* record);
  Section(Section&& other) noexcept : record_(other.record_), gen_(other.gen_) { other.record_ = nullptr; }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  ~Section() { leave(); }

  [[nodiscard]] bool ok() const { return record_ != nullptr && gen_ != 0; }
  // In state standby: nothing is written, but the live set may be changed until the section is left.
  [[nodiscard]] bool standby() const { return record_ != nullptr && gen_ == 0; }
  [[nodiscard]] ThreadRecord& record() const { return *record_; }
  [[nodiscard]] uint64_t generation() const { return gen_; }
  void leave();
  // Keeps the thread inside after this object is gone (a move's begin); resume() takes it up again.
  void suspend() { record_ = nullptr; }
  static Section resume();

  // Appends one event stamped `time` (raised to the thread's last stamp when earlier). False when it was lost.
  bool event(wire::Ev type, uint64_t time, uint64_t a, uint64_t b, uint64_t c, unsigned arguments);
  bool event(wire::Ev type, uint64_t time, uint64_t a) { return event(type, time, a, 0, 0, 1); }
  bool event(wire::Ev type, uint64_t time, uint64_t a, uint64_t b) { return event(type, time, a, b, 0, 2); }
  bool event(wire::Ev type, uint64_t time, uint64_t a, uint64_t b, uint64_t c) { return event(type, time, a, b, c, 3); }
  // Appends one row of our tables, with `text` as a last field behind the payload unless it is null. False when it was
  // lost.
  bool row(wire::Row tag, const RowBytes& payload, const char* text = nullptr, size_t length = 0);
  // The same with a payload of any length up to half a slot.
  bool row_bytes(wire::Row tag, const uint8_t* payload, size_t bytes);

 private:
  Section(ThreadRecord* record, uint64_t gen) : record_(record), gen_(gen) {}
  static Section enter_record(ThreadRecord* record);
  struct Piece {
    const uint8_t* bytes;
    size_t size;
  };
  bool append_row(wire::Row tag, const Piece* pieces, unsigned n);
  Stream* stream_with_room(wire::SlotKind kind, uint64_t time, size_t bytes);
  Stream* refill(wire::SlotKind kind, uint64_t time);
  bool append_status(Stream* stream, uint64_t time);

  ThreadRecord* record_;
  uint64_t gen_;
};

// `section_gen` of a thread in a standby section.
inline constexpr uint64_t kStandbySection = ~uint64_t{0};

// Hands all open batches of generation `gen` of `record` to the drain. Only when no section of it can be open.
void seal_streams(ThreadRecord* record, uint64_t gen);
// Moves the record's own count of events to the shared counter (once a batch instead of once an event). Owner only.
void count_events(ThreadRecord& record);

}  // namespace traceaf::emitter
