// A thread's memory of whole stacks that it was in, so that coming back to one of them costs a comparison.
//
// The memo (memo.h) knows the last stack; a program that allocates at a few places in turn changes its inner frames
// every time and yet comes back to the same few stacks. An entry is a start of a walk with all words that the walk
// read. A walk is a function of these and of the rules of the code (of one epoch), so while they are equal its result
// is the same. Only walks that read return addresses and saved rbp alone, in the known stack, are kept.
#pragma once

#include <cstdint>

#include "emitter/unwind/memory.h"
#include "emitter/unwind/module_record.h"
#include "emitter/unwind/unwind.h"

namespace traceaf::emitter::unwind {

struct StackWord {
  uintptr_t at;
  uintptr_t value;
};

class StackCache {
 public:
  // The node of the stack that `start` begins, 0 when it is not known.
  [[nodiscard]] uint32_t find(const Start& start) const {
    const Entry& entry = entries_[place_of(start)];
    if (entry.ra != start.ra || entry.cfa != start.cfa || entry.epoch != settled_epoch() ||
        (entry.uses_bp && entry.bp != start.rbp)) {
      return 0;
    }
    const StackWord* w = entry.words;
    uint32_t left = entry.count;
    for (; left >= 4; left -= 4, w += 4) {
      if (((Memory::load(w[0].at) ^ w[0].value) | (Memory::load(w[1].at) ^ w[1].value) |
           (Memory::load(w[2].at) ^ w[2].value) | (Memory::load(w[3].at) ^ w[3].value)) != 0) {
        return 0;
      }
    }
    for (; left != 0; --left, ++w)
      if (Memory::load(w->at) != w->value) return 0;
    return entry.node;
  }

  // Where the words of a stack from `start` go, room for kWords; then keep() makes the entry whole. An entry without
  // keep() is none.
  StackWord* begin(const Start& start) {
    Entry& entry = entries_[place_of(start)];
    entry.ra = 0;
    return entry.words;
  }
  void keep(const Start& start, bool uses_bp, uint32_t count, uint32_t node, uint64_t epoch) {
    if (epoch == kUnsettled) return;  // while a library goes away, the next walk may find another in its place
    Entry& entry = entries_[place_of(start)];
    entry.cfa = start.cfa;
    entry.bp = start.rbp;
    entry.epoch = epoch;
    entry.node = node;
    entry.count = count;
    entry.uses_bp = uses_bp;
    entry.ra = start.ra;
  }

  static constexpr uint32_t kWords = 96;  // deeper stacks are the memo's alone

 private:
  static constexpr unsigned kBits = 5;
  struct Entry {
    uintptr_t ra;  // 0: empty
    uintptr_t cfa;
    uintptr_t bp;
    uint64_t epoch;
    uint32_t node;
    uint32_t count;
    bool uses_bp;
    StackWord words[kWords];
  };
  static unsigned place_of(const Start& start) {
    return static_cast<unsigned>((start.ra ^ start.cfa << 20) * 0x9E3779B97F4A7C15u >> (64 - kBits));
  }

  Entry entries_[1u << kBits];
};

}  // namespace traceaf::emitter::unwind
