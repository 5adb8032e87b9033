// The events of a generation in one order: by time; at one time what exists before what dies before what is born, then
// by m. The order of one thread is always kept: its time never goes back here, even where a later batch says so.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "reader/decode.h"
#include "reader/trace.h"

namespace traceaf::reader {

// The events of one thread in file order.
class ThreadCursor {
 public:
  ThreadCursor(const Generation& gen, uint32_t slot) : gen_(&gen), list_(&gen.threads[slot]), slot_(slot) {}

  // Moves to the next event. False at the end. A malformed event ends its batch; the first one is kept in fault().
  bool next() {
    for (;;) {
      if (at_ == end_) [[unlikely]] {
        if (!open_batch()) return false;
      }
      DecodeFault fault = DecodeFault::kNone;
      event_at_ = at_;
      at_ = decode_event(at_, end_, event_, &fault);
      if (at_ != nullptr && !(no_thread_ && event_.type >= kFirstAllocFree)) [[likely]] {
        current_.type = event_.type;
        current_.args = event_.args;
        current_.time = std::max(current_.time, event_.time);
        tie_ = (static_cast<uint64_t>(kTieRank[event_.type]) << 32) | slot_;
        return true;
      }
      if (at_ != nullptr) fault = DecodeFault::kNoThread;
      note_fault(fault);
      at_ = end_;
    }
  }
  [[nodiscard]] const Event& event() const { return current_; }
  [[nodiscard]] uint32_t slot() const { return slot_; }
  [[nodiscard]] bool before(const ThreadCursor& other) const {
    if (current_.time != other.current_.time) return current_.time < other.current_.time;
    return tie_ < other.tie_;
  }
  [[nodiscard]] const Failure& fault() const { return fault_; }
  // The batch of the present event and the offset of the event.
  [[nodiscard]] const Batch& batch() const { return *batch_; }
  [[nodiscard]] uint64_t offset() const {
    return batch_->body_offset + static_cast<uint64_t>(event_at_ - (gen_->bytes.data() + batch_->begin));
  }
  // The timestamp as the batch says it, which may lie before that of the thread's previous event.
  [[nodiscard]] uint64_t raw_time() const { return event_.time; }

 private:
  bool open_batch();
  void note_fault(DecodeFault fault);

  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
  const uint8_t* event_at_ = nullptr;
  Event event_;    // as the batch says
  Event current_;  // with the time made monotone
  uint64_t tie_ = 0;
  const Generation* gen_;
  const ThreadBatches* list_;
  size_t next_batch_ = 0;
  const Batch* batch_ = nullptr;
  uint32_t slot_;
  bool no_thread_ = false;
  Failure fault_;
};

// The error of an event that could not be decoded, for people.
std::string describe_fault(DecodeFault fault, uint8_t type);

// Calls visit(cursor) for each timed event. Returns the first malformed event by offset.
template <typename Visit>
Failure merge_cursors(const Generation& gen, Visit&& visit) {
  std::vector<ThreadCursor> cursors;
  cursors.reserve(gen.threads.size());
  for (uint32_t slot = 0; slot < gen.threads.size(); ++slot) cursors.emplace_back(gen, slot);

  // A binary heap of cursors by their next event. Its top is worked off up to the runner-up before the heap is touched,
  // since threads write in runs.
  std::vector<ThreadCursor*> heap;
  for (auto& cursor : cursors) {
    if (cursor.next()) heap.push_back(&cursor);
  }
  const auto later = [](const ThreadCursor* a, const ThreadCursor* b) { return b->before(*a); };
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    ThreadCursor& top = *heap.front();
    bool more = true;
    if (heap.size() == 1) {
      do {
        visit(static_cast<const ThreadCursor&>(top));
      } while ((more = top.next()));
    } else {
      const ThreadCursor& rival = heap.size() > 2 && heap[2]->before(*heap[1]) ? *heap[2] : *heap[1];
      do {
        visit(static_cast<const ThreadCursor&>(top));
      } while ((more = top.next()) && top.before(rival));
    }
    if (!more) {
      std::pop_heap(heap.begin(), heap.end(), later);
      heap.pop_back();
      continue;
    }
    // Sift the top down.
    size_t at = 0;
    for (;;) {
      size_t child = 2 * at + 1;
      if (child >= heap.size()) break;
      if (child + 1 < heap.size() && heap[child + 1]->before(*heap[child])) ++child;
      if (!heap[child]->before(*heap[at])) break;
      std::swap(heap[child], heap[at]);
      at = child;
    }
  }

  Failure first;
  for (const auto& cursor : cursors) {
    if (cursor.fault() && (!first || *cursor.fault()->offset < *first->offset)) first = cursor.fault();
  }
  return first;
}

// Calls visit(slot, event); `slot` is an index into gen.threads.
template <typename Visit>
Failure merge_events(const Generation& gen, Visit&& visit) {
  return merge_cursors(gen, [&](const ThreadCursor& cursor) { visit(cursor.slot(), cursor.event()); });
}

}  // namespace traceaf::reader
