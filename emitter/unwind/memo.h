// A thread's memory of its last walk over one stack, so that the next walk pays for changed frames only.
//
// A walk is a deterministic function of its start (return address, stack pointer, rbp), the rules of the code, and the
// words it reads. So where a new walk arrives in a state that the remembered one was in, the rest is the same if the
// words that the rest was read from still hold what they held: the return addresses, and the saved rbp where it has a
// use further out. They are compared in reading order; nothing is concluded from a frame "still being there", for it
// may have returned and been entered again through another caller. A step that read more than these words (a signal
// frame, realigned stacks, tables read anew, guesses) is made again and its result compared.
// After unwind-types-symbols 1.3 and 1.4 of the project's research; tests compare each capture with a plain walk.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "emitter/unwind/rule.h"
#include "emitter/unwind/stack_cache.h"
#include "emitter/unwind/unwind.h"

namespace traceaf::emitter::unwind {

class Walk;

class Memo {
 public:
  // A stack as found: frames [0, base) counted from the outermost are remembered ones, `fresh` others lie inside them.
  struct Found {
    uint32_t base;
    uint32_t fresh;
    bool live;  // what lies outside the outermost fresh frame uses rbp
    wire::NodeRoot root;
  };

  // Bytes for the frames of a memo and of a scratch with room for `cap` frames each.
  static size_t frames_bytes(uint32_t cap) { return size_t{cap} * (sizeof(Word) + sizeof(Detail)); }
  static size_t scratch_bytes(uint32_t cap) { return size_t{cap} * sizeof(Fresh); }
  // `frames` and `scratch`: zeroed memory of those sizes; the scratch may serve all memos of a thread.
  void use(void* frames, void* scratch, uint32_t cap);

  // What walk() would find. A stack of more than `cap` frames is cut at its outer end and not remembered.
  Found find(const Start& start, const Bounds& bounds);
  // Remembers what was found and returns the node of its innermost frame. Nodes are given to new frames, outer ones
  // first, by `child(parent, ra, module, guessed)`; 0: there is none, the stack ends at the parent and is forgotten.
  template <typename Child>
  uint32_t commit(const Found& found, Child child);
  // Keeps the stack just committed, of node `node`, in `cache` if it is of the kind that is kept there.
  void keep(StackCache& cache, const Start& start, uint32_t node) const;
  void forget() { size_ = filled_ = depth_ = flagged_ = 0; }
  // Whether the remembered walk was on the stack that `at` lies on, as far as a guess is needed.
  [[nodiscard]] bool near(uintptr_t at) const {
    constexpr uintptr_t kNear = uintptr_t{1} << 20;
    return size_ != 0 && slot(0) - at < kNear;
  }

 private:
  // Flags of a word: more than the return address has to be looked at.
  static constexpr uintptr_t kFlags = 7;
  static constexpr uintptr_t kCheckBp = 1;  // the rbp that was read with it
  static constexpr uintptr_t kRepeat = 2;   // the whole step that led to the frame
  static constexpr uintptr_t kOutside = 4;  // a word lies outside the known stack: probe before reading
  static constexpr uintptr_t kBpLost = 1;   // as bp_slot: rbp has no value any more
  // Bits of a frame beside those of Step::flags.
  static constexpr uint32_t kLive = 1 << 8;    // a frame from here outwards uses the rbp of this frame
  static constexpr uint32_t kFailed = 1 << 9;  // no step could be made from it

  // Where the return address was read, with flags of how the frame was reached in the low bits, and what it was.
  struct Word {
    uintptr_t slot;
    uintptr_t ra;
  };
  struct Detail {
    uintptr_t bp;       // rbp of the frame; not kept up to date while nothing further out uses it
    uintptr_t bp_slot;  // where it was read; 0: it is the inner frame's
    Rule rule;
    uint32_t node;
    uint32_t bits;
  };
  struct Fresh {
    uintptr_t slot;  // with the flags that Word has, except kCheckBp
    uintptr_t ra;
    uintptr_t bp;
    uintptr_t bp_slot;
    Rule rule;
    uint32_t bits;
  };
  // Where a walk is.
  struct State {
    uintptr_t ra;
    uintptr_t sp;
    uintptr_t bp;
    uintptr_t bp_slot;
    uintptr_t how;   // flags of Word
    uint32_t flags;  // of Step
  };

  [[nodiscard]] uintptr_t slot(uint32_t i) const { return words_[i].slot & ~kFlags; }
  [[nodiscard]] bool is_at(uint32_t i, const State& at) const;
  [[nodiscard]] uint32_t first_plain_changed(uint32_t from) const;
  uint32_t first_changed(Walk& walk, uint32_t from) const;
  bool changed(Walk& walk, uint32_t i) const;
  bool adopt(Walk& walk, uint32_t from, uint32_t to, State* at, uint32_t* fresh);
  bool step(Walk& walk, State* at, uint32_t* fresh, wire::NodeRoot* root);
  uint32_t run(Walk& walk, State* at, uint32_t fresh, uintptr_t until, uint32_t next);
  void join(uint32_t met, const State& at);

  Word* words_ = nullptr;
  Detail* details_ = nullptr;
  Fresh* fresh_ = nullptr;
  uint32_t cap_ = 0;
  uint32_t size_ = 0;     // frames remembered
  uint32_t filled_ = 0;   // frames whose node is valid in words_ and details_, remembered or not
  uint32_t depth_ = 0;    // frames of the last capture
  uint32_t flagged_ = 0;  // the words of remembered frames from this one on have no flags
  uint32_t hint_ = 0;     // outer frames that the last two captures have in common
  uint64_t epoch_ = 0;
  wire::NodeRoot root_ = wire::NodeRoot::kNone;
  bool stable_end_ = false;  // the outermost frame ends the stack whatever the words say
};

// Whether the rbp of a frame with `rule` has a use; `outer`: whether its caller's has. Without branches: there is no
// pattern in it.
inline bool uses_bp(Rule rule, bool failed, bool outer) {
#ifdef TRACEAF_BREAK_MEMO_RBP
  return false;  // fault: rbp is never compared
#endif
  const bool by_sp = rule.kind() == Kind::kRsp;
  const bool kept = rule.bp() == BpRule::kKept;
  const bool by_bp = rule.bp() == BpRule::kAtRbp;
  const bool ends = rule.kind() == Kind::kEnd;
  return static_cast<bool>(static_cast<int>(failed) | (by_sp & (by_bp | (kept & outer))) | (!by_sp & !ends));
}

template <typename Child>
uint32_t Memo::commit(const Found& found, Child child) {
  if (found.fresh == 0) {
    depth_ = found.base;
    return found.base != 0 ? details_[found.base - 1].node : static_cast<uint32_t>(found.root);
  }
  uint32_t at = found.base;
  uint32_t node = at != 0 ? details_[at - 1].node : static_cast<uint32_t>(found.root);
  bool same = at != 0 || found.root == root_;
  bool live = found.live;
  const uint32_t filled = filled_;
  uint32_t flagged = flagged_ < at ? flagged_ : at;
  uint32_t known = at;
  // A jump out of a signal handler may leave this function anywhere: nothing half written is believed.
  forget();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  for (const Fresh* frame = fresh_ + found.fresh; frame-- != fresh_; ++at) {
    Word& word = words_[at];
    Detail& detail = details_[at];
    const uintptr_t ra = frame->ra;
    const Rule rule = frame->rule;
    const uint32_t bits = frame->bits;
    if (same && at < filled && word.ra == ra && detail.rule.module() == rule.module() &&
        ((detail.bits ^ bits) & kGuessed) == 0) {
      // A stack that grows again over frames that it had.
      ++known;
      node = detail.node;
    } else {
      same = false;
      const uint32_t fresh = child(node, ra, rule.module(), (bits & kGuessed) != 0);
      if (fresh == 0) return node;
      node = fresh;
      detail.node = node;
    }
    live = uses_bp(rule, (bits & kFailed) != 0, live);
    const uintptr_t bp_slot = frame->bp_slot;
    const uintptr_t slot = frame->slot | static_cast<uintptr_t>(live & (bp_slot > kBpLost));
    static_assert(kCheckBp == 1);
    flagged = (slot & kFlags) != 0 ? at + 1 : flagged;
    word.slot = slot;
    word.ra = ra;
    detail.bp = frame->bp;
    detail.bp_slot = bp_slot;
    detail.rule = rule;
    detail.bits = bits | (live ? kLive : 0);
  }
  root_ = found.root;
  hint_ = known;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  filled_ = at;
  flagged_ = flagged;
  if (found.root != wire::NodeRoot::kDepthCap) size_ = depth_ = at;
  return node;
}

}  // namespace traceaf::emitter::unwind
