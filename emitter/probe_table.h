// An open-addressing table with linear probing; removal shifts later entries back, so nothing is left behind by
// churn. Not thread-safe. Entry is trivial and has key() (0: empty), clear() and a static hash(key) whose high bits are
// used. Its memory is mapped, or taken from a pool while small.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "emitter/live_pool.h"
#include "emitter/region.h"

namespace traceaf::emitter {

template <typename Entry>
class ProbeTable {
 public:
  constexpr ProbeTable() = default;

  [[nodiscard]] Entry* find(uintptr_t key) const {
    if (slots_ == nullptr) return nullptr;
    for (size_t i = home(key);; i = next(i)) {
      Entry& entry = slots_->at()[i];
      if (entry.key() == key) return &entry;
      if (entry.key() == 0) return nullptr;
    }
  }

  // Adds the entry, or replaces that of the same key. False: no memory, nothing was changed.
  bool put(LivePool& pool, const Entry& entry) {
    if (Entry* known = find(entry.key()); known != nullptr) {
      *known = entry;
      return true;
    }
    const size_t capacity = slots_ == nullptr ? 0 : slots_->mask + 1;
    if (used_ * 2 >= capacity && !refill(pool, capacity == 0 ? kFirst : capacity * 2) && used_ + 1 >= capacity)
      return false;
    place(entry);
    return true;
  }

  void erase(uintptr_t key) {
    Entry* found = find(key);
    if (found == nullptr) return;
    Entry* slots = slots_->at();
    const size_t mask = slots_->mask;
    auto hole = static_cast<size_t>(found - slots);
    --used_;
    for (size_t i = next(hole); slots[i].key() != 0; i = next(i)) {
      // Moves back unless its home lies (cyclically) behind the hole.
      if (((i - home(slots[i].key())) & mask) < ((i - hole) & mask)) continue;
      slots[hole] = slots[i];
      hole = i;
    }
    slots[hole].clear();
  }

  template <typename Visit>
  void visit(Visit visit) const {
    if (slots_ == nullptr) return;
    for (size_t i = 0; i <= slots_->mask; ++i)
      if (slots_->at()[i].key() != 0) visit(slots_->at()[i]);
  }

  // Drops everything; what came from the pool goes with the pool.
  void forget() {
    give_back(slots_);
    slots_ = nullptr;
    used_ = 0;
  }

  // Whatever an owner that vanished in the middle of a change left: afterwards every key is there once, where it is
  // found. `keep(entry)` may mend or refuse an entry first. False: no memory, and the table is empty.
  template <typename Keep>
  bool mend(LivePool& pool, Keep keep) {
    if (slots_ == nullptr) return true;
    Slots* old = slots_;
    slots_ = make(pool, old->mask + 1);
    used_ = 0;
    if (slots_ == nullptr) return false;
    for (size_t i = 0; i <= old->mask; ++i) {
      Entry entry = old->at()[i];
      if (entry.key() != 0 && keep(entry)) put(pool, entry);
    }
    give_back(old);
    return true;
  }

 private:
  static constexpr size_t kFirst = 16;
  // One word to change when the table grows: whoever reads it later has the entries and their number together.
  struct alignas(64) Slots {
    size_t mask;
    size_t bytes;
    unsigned shift;
    Entry* at() { return reinterpret_cast<Entry*>(this + 1); }
  };

  [[nodiscard]] size_t home(uintptr_t key) const { return Entry::hash(key) >> slots_->shift; }
  [[nodiscard]] size_t next(size_t i) const { return (i + 1) & slots_->mask; }

  void place(const Entry& entry) {
    size_t i = home(entry.key());
    while (slots_->at()[i].key() != 0) i = next(i);
    slots_->at()[i] = entry;
    ++used_;
  }

  bool refill(LivePool& pool, size_t capacity) {
    Slots* fresh = make(pool, capacity);
    if (fresh == nullptr) return false;
    ProbeTable larger;
    larger.slots_ = fresh;
    visit([&](const Entry& entry) { larger.place(entry); });
    Slots* old = slots_;
    std::atomic_signal_fence(std::memory_order_seq_cst);  // whole, wherever a fork cuts this
    slots_ = fresh;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    give_back(old);
    return true;
  }

  static Slots* make(LivePool& pool, size_t capacity) {
    const size_t bytes = sizeof(Slots) + capacity * sizeof(Entry);
    auto* slots = static_cast<Slots*>(bytes <= LivePool::kLargest ? pool.take(bytes) : own_map(bytes));
    if (slots == nullptr) return nullptr;
    slots->mask = capacity - 1;
    slots->bytes = bytes;
    slots->shift = 64 - static_cast<unsigned>(__builtin_ctzll(capacity));
    return slots;
  }
  static void give_back(Slots* slots) {
    if (slots != nullptr && slots->bytes > LivePool::kLargest) own_unmap(slots, slots->bytes);
  }

  Slots* slots_ = nullptr;
  size_t used_ = 0;
};

}  // namespace traceaf::emitter
