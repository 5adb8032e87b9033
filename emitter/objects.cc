// Births, deaths and moves of objects as events (see recorder.h).
#include "emitter/capture.h"
#include "emitter/clock.h"
#include "emitter/counters.h"
#include "emitter/flusher.h"
#include "emitter/live_set.h"
#include "emitter/recorder.h"
#include "emitter/section.h"
#include "emitter/session.h"
#include "emitter/span_sink.h"
#include "emitter/spans/quick.h"
#include "emitter/types.h"

namespace traceaf::emitter {
namespace {

uint64_t object_id(const void* p) { return (reinterpret_cast<uintptr_t>(p) - facts().min_addr) / wire::kMinHeapAlign; }

// True when the call may be recorded. A signal handler that interrupted the recorder on this thread may not: locks of
// ours may be held. What it does is counted.
[[gnu::noinline]] bool may_record_after_all() {
  if (inside_recorder()) {
    count(wire::Counter::k_nested_events);
    return false;
  }
  if (gate() == kGateChild) begin_child_session();
  return gate() == kGateOn || gate() == kGateStandby;
}

inline bool may_record() { return (gate() == kGateOn && !t_local.inside) || may_record_after_all(); }

// False: see live_set.h, to be done again in a new section.
bool born(Section& section, Frame frame, const void* p, size_t size, wire::Entry entry, size_t align) {
  ThreadRecord& record = section.record();
  Section* writer = section.ok() ? &section : nullptr;
  const uint32_t node = capture_context(record, frame);
  const auto align_log2 = static_cast<uint8_t>(align > 1 ? __builtin_ctzll(align) : 0);
  const auto address = reinterpret_cast<uintptr_t>(p);
  if (live_set_active() && !live_set_add(writer, {address, size, node, static_cast<uint8_t>(entry), align_log2}))
    return false;
  if (writer == nullptr) return true;
  if (!spans::born_in_known_span(record.span_cache, address, size)) {
    spans::Sink sink = span_sink(section);
    spans::object_born(record.span_cache, sink, address, size);
  }
  const uint32_t type = type_of(section, node, entry, align_log2, size);
  section.event(wire::Ev::kHeapObjectAlloc, section.now(), object_id(p), uint64_t{type});
  return true;
}

// `time`: when the block was given up, before the allocator had it; 0: now.
bool died(Section& section, Frame frame, const void* p, uint64_t time) {
  if (live_set_active() && !live_set_remove(section.ok() ? &section : nullptr, reinterpret_cast<uintptr_t>(p)))
    return false;
  if (!section.ok()) return true;
  // After the live set: it may just have written the block into a snapshot, which the death must follow.
  if (time == 0) time = section.now();
  ThreadRecord& record = section.record();
  if (section.event(wire::Ev::kHeapObjectFree, time, object_id(p))) {
    if (record.free_index_gen != section.generation()) {
      record.free_index_gen = section.generation();
      record.free_index = 0;
    }
    if (settings().stacks == Stacks::kBoth) {
      const uint32_t node = capture_context(record, frame);
      context_rows(section, node);
      RowBytes row;
      row.number(record.m).number(record.free_index).number(node);
      section.row(wire::Row::kFreeStack, row);
    }
    ++record.free_index;
  }
  return true;
}

bool dying(Section& section, Frame frame, const void* p) {
  if (!died(section, frame, p, 0)) return false;
  if (section.ok() && !spans::shares_its_span(reinterpret_cast<uintptr_t>(p))) {
    spans::Sink sink = span_sink(section);
    spans::object_dying(section.record().span_cache, sink, reinterpret_cast<uintptr_t>(p));
  }
  return true;
}

// The first half of a move to `p` (null: to nowhere), and what it does to the spans. The death comes first: it carries
// the time before the real call, and stamps of one thread never fall. False: as died.
bool old_block_died(Section& section, Frame frame, const Move& move, const void* p, size_t size) {
  if (!died(section, frame, move.old, move.time)) return false;
  if (section.ok()) {
    spans::Sink sink = span_sink(section);
    spans::after_move(section.record().span_cache, sink, move.span, reinterpret_cast<uintptr_t>(move.old),
                      reinterpret_cast<uintptr_t>(p), size);
  }
  return true;
}

// Runs `change` in a section (or standby section) of the calling thread until it is done.
template <typename Change>
void in_section(Change change) {
  const Inside inside;
  for (bool done = false; !done;) {
    Section section = Section::enter();
    done = (!section.ok() && !section.standby()) || change(section);
  }
  if (!flusher_runs()) [[unlikely]]
    flusher_inline_work();
}

// Hands `change` the span events of the calling thread, while recording is on.
template <typename Change>
void change_spans(Change change) {
  if (!may_record()) return;
  const Inside inside;
  Section section = Section::enter();
  if (!section.ok()) return;
  spans::Sink sink = span_sink(section);
  change(sink);
}

}  // namespace

void object_born(Frame frame, const void* p, size_t size, wire::Entry entry, size_t align) {
  if (!may_record()) return;
  in_section([&](Section& section) { return born(section, frame, p, size, entry, align); });
}

void object_dying(Frame frame, const void* p) {
  if (!may_record()) return;
  in_section([&](Section& section) { return dying(section, frame, p); });
}

Move move_begin(const void* old) {
  Move move{old, 0, 0, false};
  if (!may_record()) return move;
  const Inside inside;
  Section section = Section::enter();
  if (!section.ok() && !section.standby()) return move;
  move.open = true;
  move.span = spans::before_move(reinterpret_cast<uintptr_t>(old));
  if (live_set_active()) live_set_touch(section.ok() ? &section : nullptr, reinterpret_cast<uintptr_t>(old));
  move.time = section.ok() ? section.now() : 0;
  section.suspend();
  return move;
}

void move_failed(Move& move) {
  if (!move.open) return;
  Section::resume().leave();
}

void move_freed(Move& move, Frame frame) {
  if (!move.open) return;
  const Inside inside;
  bool done = false;
  {
    Section section = Section::resume();
    done = old_block_died(section, frame, move, nullptr, 0);
  }
  // Recording began during the call: the snapshot has the old block, so its death comes now.
  if (!done) in_section([&](Section& section) { return died(section, frame, move.old, 0); });
}

void move_done(Move& move, Frame frame, const void* p, size_t size, wire::Entry entry) {
  if (!move.open) return;
  const Inside inside;
  bool done = false;
  {
    Section section = Section::resume();
    done = old_block_died(section, frame, move, p, size);
    if (done && born(section, frame, p, size, entry, 0)) return;
  }
  if (!done) in_section([&](Section& section) { return died(section, frame, move.old, 0); });
  in_section([&](Section& section) { return born(section, frame, p, size, entry, 0); });
}

void mapping_added(const void* at, size_t bytes, wire::SpanSource source) {
  change_spans([&](spans::Sink& sink) { spans::mapping_added(sink, reinterpret_cast<uintptr_t>(at), bytes, source); });
}

void mapping_removing(const void* at, size_t bytes) {
  change_spans([&](spans::Sink& sink) { spans::mapping_removed(sink, reinterpret_cast<uintptr_t>(at), bytes); });
}

void mapping_restored(const void* at, size_t bytes) { mapping_added(at, bytes, wire::SpanSource::kUnknown); }

void next_allocator(const NextAllocator& info) { spans::set_allocator(info); }

void break_changed() {
  change_spans([](spans::Sink& sink) { spans::break_changed(sink); });
}

}  // namespace traceaf::emitter
