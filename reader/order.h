// The events of a generation in one order: by time; at one time what exists before what dies before what is born, then
// by m. The order of one thread is always kept: its time never goes back here, even where a later batch says so.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reader/decode.h"
#include "reader/trace.h"

namespace traceaf::reader {

// Where an event stands in the order. `tie` ends in the slot of its thread.
struct OrderKey {
  uint64_t time, tie;
  [[nodiscard]] bool before(const OrderKey& other) const {
    using Wide = unsigned __int128;
    return (Wide{time} << 64 | tie) < (Wide{other.time} << 64 | other.tie);
  }
};
inline constexpr OrderKey kLastKey{~uint64_t{0}, ~uint64_t{0}};  // behind every event

// A tournament of the threads' next events. Each inner node keeps the loser of its game, so that after an event only
// the games on one path are played again; they are played without branches, for nobody can predict which thread is
// next.
class Tournament {
 public:
  // `keys`: of each slot, kLastKey where there is no event.
  explicit Tournament(const std::vector<OrderKey>& keys) {
    while (size_ < keys.size()) size_ *= 2;
    times_.resize(size_);
    ties_.resize(size_);
    std::vector<OrderKey> winners(2 * size_, kLastKey);
    std::copy(keys.begin(), keys.end(), winners.begin() + static_cast<ptrdiff_t>(size_));
    for (size_t node = size_ - 1; node != 0; --node) {
      const OrderKey& a = winners[2 * node];
      const OrderKey& b = winners[2 * node + 1];
      const bool second = b.before(a);
      winners[node] = second ? b : a;
      times_[node] = (second ? a : b).time;
      ties_[node] = (second ? a : b).tie;
    }
    winner_ = winners[1].tie;
  }
  // Whether there is an event, and the slot of its thread.
  [[nodiscard]] bool over() const { return winner_ == kLastKey.tie; }
  [[nodiscard]] uint32_t winner() const { return static_cast<uint32_t>(winner_); }
  // The least key of all other threads.
  [[nodiscard]] OrderKey rival() const {
    OrderKey least = kLastKey;
    for (size_t node = (size_ + winner()) / 2; node != 0; node /= 2) {
      const OrderKey loser{times_[node], ties_[node]};
      if (loser.before(least)) least = loser;
    }
    return least;
  }
  // The winner's thread goes on with `key`.
  void replace(const OrderKey& key) {
    uint64_t time = key.time;
    uint64_t tie = key.tie;
    for (size_t node = (size_ + winner()) / 2; node != 0; node /= 2) {
      const uint64_t loser_time = times_[node];
      const uint64_t loser_tie = ties_[node];
      const uint64_t change = 0 - static_cast<uint64_t>(OrderKey{loser_time, loser_tie}.before({time, tie}));
      const uint64_t other_time = (loser_time ^ time) & change;
      const uint64_t other_tie = (loser_tie ^ tie) & change;
      times_[node] = loser_time ^ other_time;
      ties_[node] = loser_tie ^ other_tie;
      time ^= other_time;
      tie ^= other_tie;
    }
    winner_ = tie;
  }

 private:
  size_t size_ = 1;
  // The losers' keys, in two lists: of one that holds pairs the compiler makes 16-byte loads behind 8-byte stores,
  // which stall.
  std::vector<uint64_t> times_, ties_;
  uint64_t winner_ = 0;  // its tie
};

// The events of one thread in file order, decoded some at a time.
class ThreadCursor {
 public:
  // `buffer` has room for `room` events and belongs to this cursor.
  ThreadCursor(const Generation& gen, uint32_t slot, Event* buffer, size_t room)
      : buffer_(buffer),
        room_(room),
        event_(buffer),
        last_(buffer + 1),
        gen_(&gen),
        list_(&gen.threads[slot]),
        slot_(slot) {}

  // Moves to the next event; `ahead` is called for each event some time before it is the present one. False at the end.
  // A malformed event ends its batch; the first one is kept in fault().
  template <typename Ahead>
  bool next(Ahead&& ahead) {
    if (++event_ == last_) [[unlikely]] {
      if (!refill()) return false;
      const Event* const first = std::min<const Event*>(last_, buffer_ + kAhead);
      for (const Event* e = buffer_; e != first; ++e) ahead(*e);
    }
    if (last_ - event_ > kAhead) ahead(event_[kAhead]);
    time_ = std::max(time_, event_->time);
    return true;
  }
  // The present event; its `time` is as the batch says and may lie before that of the thread's previous event.
  [[nodiscard]] const Event& event() const { return *event_; }
  [[nodiscard]] uint64_t time() const { return time_; }
  [[nodiscard]] uint32_t slot() const { return slot_; }
  // Its place in the order.
  [[nodiscard]] OrderKey key() const { return {time_, (static_cast<uint64_t>(kTieRank[event_->type]) << 32) | slot_}; }
  [[nodiscard]] const Failure& fault() const { return fault_; }
  // The batch of the present event and the offset of the event.
  [[nodiscard]] const Batch& batch() const { return *batch_; }
  [[nodiscard]] uint64_t offset() const { return batch_->body_offset + event_->at; }

 private:
  bool refill();
  bool open_batch();
  void note_fault(DecodeFault fault);

  static constexpr ptrdiff_t kAhead = 32;
  Event* buffer_;
  size_t room_;
  const Event* event_;  // before the first next(): one in front of last_
  const Event* last_;   // behind the events decoded
  uint64_t time_ = 0;   // of the present event, made monotone
  // The undecoded rest of the batch, and the time of the event before it.
  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
  uint64_t batch_time_ = 0;
  const Generation* gen_;
  const ThreadBatches* list_;
  size_t next_batch_ = 0;
  const Batch* batch_ = nullptr;
  uint32_t slot_;
  Failure fault_;
};

// The error of an event that could not be decoded, for people.
std::string describe_fault(DecodeFault fault, uint8_t type);

// Events that a thread is decoded ahead: few where there are many threads, so that what is fetched for them is still
// near when their turn comes.
inline size_t events_ahead(size_t threads) { return std::clamp<size_t>(1024 / (threads + 1), 8, 64); }

// Events of one thread in a row from which more of them are likely.
inline constexpr unsigned kRun = 8;

// Calls visit(cursor) for each timed event, and ahead(event) for each some time before. Returns the first malformed
// event by offset.
template <typename Ahead, typename Visit>
Failure merge_cursors(const Generation& gen, Ahead&& ahead, Visit&& visit) {
  const size_t room = events_ahead(gen.threads.size());
  const auto buffers = std::make_unique_for_overwrite<Event[]>(room * gen.threads.size());
  std::vector<ThreadCursor> cursors;
  cursors.reserve(gen.threads.size());
  for (uint32_t slot = 0; slot < gen.threads.size(); ++slot) {
    cursors.emplace_back(gen, slot, buffers.get() + slot * room, room);
  }

  const auto next = [&](ThreadCursor& cursor) { return cursor.next(ahead) ? cursor.key() : kLastKey; };
  std::vector<OrderKey> keys;
  keys.reserve(cursors.size());
  for (auto& cursor : cursors) keys.push_back(next(cursor));
  Tournament tournament(keys);
  unsigned wins = 0;  // of one thread in a row
  while (!tournament.over()) {
    const uint32_t slot = tournament.winner();
    ThreadCursor& cursor = cursors[slot];
    visit(static_cast<const ThreadCursor&>(cursor));
    tournament.replace(next(cursor));
    wins = tournament.winner() == slot ? wins + 1 : 0;
    if (wins < kRun) continue;
    // A run: its end is easier found by one comparison an event.
    const OrderKey rival = tournament.rival();
    OrderKey key;
    do {
      visit(static_cast<const ThreadCursor&>(cursor));
      key = next(cursor);
    } while (key.before(rival));
    tournament.replace(key);
    wins = 0;
  }

  Failure first;
  for (const auto& cursor : cursors) {
    if (cursor.fault() && (!first || *cursor.fault()->offset < *first->offset)) first = cursor.fault();
  }
  return first;
}

}  // namespace traceaf::reader
