// The write section: the only way to write events and rows. acquire() ties the calling thread to one generation until
// release; while any thread is inside a generation, that generation is not closed. After the seed's
// traceAcquire/traceRelease: nested sections keep the generation of the outermost.
#pragma once

#include <atomic>
#include <cstdint>

#include "emitter/clock.h"
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

// Whether the advancer reaches all running threads with membarrier(2), so that entering a section takes no locked
// instruction. Decided at the start (and again in a forked child), and given up for good when the call fails.
extern std::atomic<bool> g_membarrier;
void sections_init();
// By the advancer after a store of g_generation and before it looks at `writing`: from here on every thread is seen
// inside its section, or will see the new generation.
void sections_see_generation();

class Section {
 public:
  // Enters for the calling thread. ok() is false when nothing is being written, the thread has no record, or a signal
  // interrupted this thread's own append (counted in nested_events).
  static Section enter() {
    ThreadRecord* record = t_local.record;
    if (record == nullptr || record->writing.load(std::memory_order_relaxed) != 0) [[unlikely]]
      return enter_rarely();
    return enter_record(record);
  }
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
  // The present in ticks; only while ok().
  [[nodiscard]] uint64_t now() const { return clock_ticks(gen_); }
  void leave() {
    if (record_ == nullptr) return;
    const uint32_t depth = record_->writing.load(std::memory_order_relaxed);
    if (depth == 1) record_->section_gen.store(0, std::memory_order_relaxed);
    // Release: the advancer that reads 0 sees every byte written in this section.
    record_->writing.store(depth - 1, std::memory_order_release);
    record_ = nullptr;
  }
  // Keeps the thread inside after this object is gone (a move's begin); resume() takes it up again.
  void suspend() { record_ = nullptr; }
  static Section resume();

  // Appends one event stamped `time` (raised to the thread's last stamp when earlier). False when it was lost.
  template <typename... Arguments>
  bool event(wire::Ev type, uint64_t time, Arguments... arguments);
  // Appends one row of our tables, with `text` as a last field behind the payload unless it is null. False when it was
  // lost.
  bool row(wire::Row tag, const RowBytes& payload, const char* text = nullptr, size_t length = 0);
  // The same for rows whose first two fields are coded as differences.
  bool row_after(wire::Row tag, uint64_t first, uint64_t second, const RowBytes& rest);
  // The same with a payload of any length up to half a slot.
  bool row_bytes(wire::Row tag, const uint8_t* payload, size_t bytes);

 private:
  Section(ThreadRecord* record, uint64_t gen) : record_(record), gen_(gen) {}
  static Section enter_record(ThreadRecord* record);
  static Section enter_rarely();
  static Section enter_nested(ThreadRecord* record);
  static Section enter_unwritten(ThreadRecord* record);
  struct Piece {
    const uint8_t* bytes;
    size_t size;
  };
  // Whatever it takes to write an event now. The record stays busy: a handler must not use the room up. Null: it is
  // lost, and counted.
  Stream* room_for_event(uint64_t time);
  Stream* room_for_row(size_t bytes);
  bool append_row(wire::Row tag, const Piece* pieces, unsigned n);
  Stream* stream_with_room(wire::SlotKind kind, uint64_t time, size_t bytes);
  Stream* refill(wire::SlotKind kind, uint64_t time);
  bool append_status(Stream* stream, uint64_t time);

  ThreadRecord* record_;
  uint64_t gen_;
};

// Raises `busy` for the time of an append. The fences keep the compiler from moving stores across: the only other
// observer is a signal handler on this thread.
class Busy {
 public:
  explicit Busy(ThreadRecord& r) : r_(r) {
    r_.busy = 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~Busy() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    r_.busy = after_;
  }
  // It stays raised, for the next Busy to lower.
  void stay() { after_ = 1; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  ThreadRecord& r_;
  uint32_t after_ = 0;
};

// Sequentially consistent with the advancer: it stores the generation and then reads `writing`; we store `writing` and
// then read the generation. So it waits for us, or we see the new generation.
inline Section Section::enter_record(ThreadRecord* record) {
  if (record->writing.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return enter_nested(record);
  if (g_membarrier.load(std::memory_order_relaxed)) [[likely]] {
    record->writing.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    record->writing.exchange(1, std::memory_order_seq_cst);
  }
  const uint64_t gen = g_generation.load(std::memory_order_seq_cst);
  if (gen == 0) [[unlikely]]
    return enter_unwritten(record);
  record->section_gen.store(gen, std::memory_order_relaxed);
  return {record, gen};
}

template <typename... Arguments>
inline bool Section::event(wire::Ev type, uint64_t time, Arguments... arguments) {
  static_assert(1 + (1 + sizeof...(Arguments)) * wire::kMaxVarint <= wire::kMaxEventBytes);
  ThreadRecord& r = *record_;
  Stream* stream = &r.streams[gen_ & 1][wire::kSlotEvents];
  if (stream->gen != gen_ || stream->at > stream->last || r.status_gen != gen_ || r.busy != 0 ||
      time >= g_generation_due.load(std::memory_order_relaxed)) [[unlikely]] {
    stream = room_for_event(time);
    if (stream == nullptr) return false;
  }
  const Busy busy(r);
  uint8_t* at = stream->at;
  *at = static_cast<uint8_t>(type);
  at = wire::put_varint_wide(at + 1, stream->advance(r, time));
  ((at = wire::put_varint_wide(at, arguments)), ...);
  stream->at = at;
  stream->commit();
  r.uncounted_events.store(r.uncounted_events.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return true;
}

// `section_gen` of a thread in a standby section.
inline constexpr uint64_t kStandbySection = ~uint64_t{0};

// Hands all open batches of generation `gen` of `record` to the drain. Only when no section of it can be open.
void seal_streams(ThreadRecord* record, uint64_t gen);
// Moves the record's own count of events to the shared counter (once a batch instead of once an event). Owner only.
void count_events(ThreadRecord& record);

}  // namespace traceaf::emitter
