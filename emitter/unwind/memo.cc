// The validated memo (see memo.h).
#include "emitter/unwind/memo.h"

#include "emitter/unwind/walker.h"

namespace traceaf::emitter::unwind {

namespace {

using wire::NodeRoot;

constexpr uint32_t kStepFlags = kInterrupted | kGuessed;

bool is_plain(Rule rule) { return rule.kind() == Kind::kRsp || rule.kind() == Kind::kRbp; }

}  // namespace

void Memo::use(void* frames, void* scratch, uint32_t cap) {
  words_ = static_cast<Word*>(frames);
  details_ = reinterpret_cast<Detail*>(words_ + cap);
  fresh_ = static_cast<Fresh*>(scratch);
  cap_ = cap;
  forget();
}

bool Memo::is_at(uint32_t i, const State& at) const {
  const Detail& detail = details_[i];
  return words_[i].ra == at.ra && slot(i) == at.sp - kWord && (detail.bits & kStepFlags) == at.flags &&
         ((detail.bits & kLive) == 0 || detail.bp == at.bp);
}

// Whether the step from frame i + 1 to frame i would now lead elsewhere.
__attribute__((noinline)) bool Memo::changed(Walk& walk, uint32_t i) const {
  const Word word = words_[i];
  const Detail& detail = details_[i];
#ifndef TRACEAF_BREAK_MEMO_REPEAT  // fault: the return address alone is compared
  if ((word.slot & kRepeat) != 0) {
    const Detail& inner = details_[i + 1];
    Registers regs{words_[i + 1].ra, slot(i + 1) + kWord, inner.bp};
    uint32_t flags = inner.bits & kStepFlags;
    const Rule rule = walk.rule_at(regs.ip, flags);
    return rule.bits != inner.rule.bits || walk.step(rule, &regs, &flags) != Outcome::kStepped || regs.ip != word.ra ||
           regs.sp != slot(i) + kWord || regs.bp != detail.bp || flags != (detail.bits & kStepFlags);
  }
#endif
  uintptr_t value = 0;
  if (!walk.memory().read(slot(i), &value) || value != word.ra) return true;
  return (word.slot & kCheckBp) != 0 && (!walk.memory().read(detail.bp_slot, &value) || value != detail.bp);
}

// Compares the words without flags of the frames [flagged_, from), inner to outer. Returns one more than the index of
// the first that changed, or flagged_ when none did.
inline uint32_t Memo::first_plain_changed(uint32_t from) const {
  uint32_t i = from;
  // Four at a time: words ahead of a changed one lie in the known stack too, so reading them does no harm.
  for (; i >= flagged_ + 4; i -= 4) {
    const Word* w = words_ + i;
    const uintptr_t a = Memory::load(w[-1].slot) ^ w[-1].ra;
    const uintptr_t b = Memory::load(w[-2].slot) ^ w[-2].ra;
    const uintptr_t c = Memory::load(w[-3].slot) ^ w[-3].ra;
    const uintptr_t d = Memory::load(w[-4].slot) ^ w[-4].ra;
    if ((a | b | c | d) != 0) break;
  }
  for (; i > flagged_; --i)
    if (Memory::load(words_[i - 1].slot) != words_[i - 1].ra) return i;
  return flagged_;
}

// The same for all frames outside `from`; 0 when none changed.
uint32_t Memo::first_changed(Walk& walk, uint32_t from) const {
  uint32_t i = from;
  if (from > flagged_) {
    i = first_plain_changed(from);
    if (i != flagged_) return i;
  }
  for (; i != 0; --i) {
    const Word word = words_[i - 1];
    if ((word.slot & kFlags) == 0) {
      if (Memory::load(word.slot) != word.ra) return i;
    } else if (changed(walk, i - 1)) {
      return i;
    }
  }
  return 0;
}

void Memo::keep(StackCache& cache, const Start& start, uint32_t node) const {
  if (depth_ == 0 || depth_ > StackCache::kWords || !stable_end_ || root_ != NodeRoot::kComplete) return;
  const uint32_t inner = depth_ - 1;
  const uint32_t bits = details_[inner].bits;
  if ((bits & kStepFlags) != 0) return;
  StackWord* const words = cache.begin(start);
  uint32_t count = 0;
  for (uint32_t i = inner; i > flagged_; --i) {
    words[count].at = words_[i - 1].slot;
    words[count++].value = words_[i - 1].ra;
  }
  for (uint32_t i = flagged_ < inner ? flagged_ : inner; i != 0; --i) {
    const uintptr_t flags = words_[i - 1].slot & kFlags;
    if ((flags & (kRepeat | kOutside)) != 0 || count + 2 > StackCache::kWords) return;
    words[count].at = slot(i - 1);
    words[count++].value = words_[i - 1].ra;
    if (flags == 0) continue;
    words[count].at = details_[i - 1].bp_slot;
    words[count++].value = details_[i - 1].bp;
  }
  cache.keep(start, (bits & kLive) != 0, count, node, epoch_);
}

// Takes over the frames [to, from] as frames of the new stack whose outer part is not known, all but the outermost of
// them, which becomes `*at`. False when there was no room for them all.
bool Memo::adopt(Walk& walk, uint32_t from, uint32_t to, State* at, uint32_t* fresh) {
  for (uint32_t i = from; i != to; --i) {
    if (*fresh == cap_) return false;
    const Detail& detail = details_[i];
    const Detail& outer = details_[i - 1];
    State caller{
        words_[i - 1].ra,       slot(i - 1) + kWord, at->bp, outer.bp_slot, words_[i - 1].slot & (kRepeat | kOutside),
        outer.bits & kStepFlags};
    // What a repeated step gave is exact; elsewhere the remembered rbp may be out of date.
    if ((caller.how & kRepeat) != 0) {
      caller.bp = outer.bp;
    } else if (caller.bp_slot == kBpLost) {
      caller.bp = 0;
    } else if (caller.bp_slot != 0 && !walk.memory().read(caller.bp_slot, &caller.bp)) {
      return true;  // a rule step from here fails likewise
    }
    fresh_[(*fresh)++] = {at->sp - kWord + at->how, at->ra, at->bp, at->bp_slot, detail.rule, at->flags};
    *at = caller;
  }
  return true;
}

// The stack is as remembered from frame `met` outwards, which was reached anew as `at` says.
void Memo::join(uint32_t met, const State& at) {
  Detail& detail = details_[met];
  const bool live = (detail.bits & kLive) != 0;
  words_[met].slot = slot(met) | at.how | (live && at.bp_slot > kBpLost ? kCheckBp : 0);
  if ((words_[met].slot & kFlags) != 0 && flagged_ <= met) flagged_ = met + 1;
  detail.bp = at.bp;
  detail.bp_slot = at.bp_slot;
}

// Plain steps inside the known stack, while there are, until the stack pointer is above `until`. Returns the number of
// fresh frames. The remembered frames [0, next) lie further out; where a new frame ends is most often where an old one
// did. That guess is only a help for the processor: it lets it read the next return address before the rule is known.
uint32_t Memo::run(Walk& walk, State* at, uint32_t fresh, uintptr_t until, uint32_t next) {
  const RuleTable* table = walk.table();
  if (table == nullptr || at->flags != 0) return fresh;
  const Memory& memory = walk.memory();
  uintptr_t ra = at->ra, sp = at->sp, bp = at->bp, bp_slot = at->bp_slot, how = at->how;
  Fresh* out = fresh_ + fresh;
  const Fresh* const end = fresh_ + cap_;
  const Word* guess = words_ + next;
  while (guess != words_ && guess[-1].slot < sp) --guess;
  while (out != end && sp <= until && ra != 0) {
    const Rule rule = table->find(rule_key(ra, false));
    if (!is_plain(rule) || !walk.trusts(rule)) break;
    const uintptr_t cfa = (rule.kind() == Kind::kRsp ? sp : bp) + static_cast<uintptr_t>(rule.cfa());
    if (cfa <= sp || cfa % kWord != 0 || !memory.inside(cfa - kWord)) break;
    if (rule.bp() != BpRule::kAtCfa && rule.bp() != BpRule::kKept) break;
    // Whether rbp was saved has no pattern, so both cases read a word.
    const bool saved = rule.bp() == BpRule::kAtCfa;
    const uintptr_t place = cfa - kWord + (saved ? static_cast<uintptr_t>(rule.saved()) + kWord : 0);
    if (!memory.inside(place)) break;
    const uintptr_t word = Memory::load(place);
    const uintptr_t next_bp = saved ? word : bp;
    const uintptr_t next_slot = saved ? place : 0;
    // Field by field: gcc builds a whole one on the stack and waits for it to get there.
    out->slot = sp - kWord + how;
    out->ra = ra;
    out->bp = bp;
    out->bp_slot = bp_slot;
    out->rule = rule;
    out->bits = 0;
    ++out;
    uintptr_t guessed = guess != words_ ? guess[-1].slot & ~kFlags : 0;
    asm("" : "+r"(guessed));  // else the compiler, knowing both to be equal, reads by the other one
    if (guessed == cfa - kWord) [[likely]] {
      ra = Memory::load(guessed);
      --guess;
    } else {
      ra = Memory::load(cfa - kWord);
      while (guess != words_ && guess[-1].slot < cfa) --guess;
    }
    sp = cfa;
    bp = next_bp;
    bp_slot = next_slot;
    how = 0;
  }
  *at = {ra, sp, bp, bp_slot, how, 0};
  return static_cast<uint32_t>(out - fresh_);
}

// Any one step. False: it is the outermost frame, for the reason `*root`.
bool Memo::step(Walk& walk, State* at, uint32_t* fresh, NodeRoot* root) {
  const Rule rule = walk.rule_at(at->ra, at->flags);
  Fresh& frame = fresh_[(*fresh)++];
  frame = {at->sp - kWord + at->how, at->ra, at->bp, at->bp_slot, rule, at->flags};
  Registers regs{at->ra, at->sp, at->bp};
  const Outcome outcome = walk.step(rule, &regs, &at->flags);
  if (outcome != Outcome::kStepped) {
    stable_end_ = rule.kind() == Kind::kEnd;
    if (!stable_end_) frame.bits |= kFailed;
    *root = root_of(outcome);
    return false;
  }
  at->bp_slot = 0;
  at->how = 0;
  if (!is_plain(rule)) {
    at->how = kRepeat;
  } else if (rule.bp() == BpRule::kLost) {
    at->bp_slot = kBpLost;
  } else if (rule.bp() != BpRule::kKept) {
    at->bp_slot = (rule.bp() == BpRule::kAtCfa ? regs.sp : at->bp) + static_cast<uintptr_t>(rule.saved());
  }
  const Memory& memory = walk.memory();
  if (!memory.inside(regs.sp - kWord) || (at->bp_slot > kBpLost && !memory.inside(at->bp_slot))) at->how |= kOutside;
  at->ra = regs.ip;
  at->sp = regs.sp;
  at->bp = regs.bp;
  return true;
}

Memo::Found Memo::find(const Start& start, const Bounds& bounds) {
  Walk walk(bounds);
  if (epoch_ != walk.epoch() || epoch_ == kUnsettled) [[unlikely]] {
    forget();  // another library may be where one of the known frames was
    epoch_ = walk.epoch();
  }
  State at{start.ra, start.cfa, start.rbp, 0, walk.memory().inside(start.cfa - kWord) ? 0 : kOutside, 0};
  uint32_t fresh = 0;
  uint32_t next = size_;  // remembered frames [0, next) may still be met
  // What changed last time most often changes again: where the first frames are not met, the memo is asked again from
  // there on, and until then the walk goes by the rules without looking.
  // The innermost frame of the last capture need not be asked for: the stack cache has just found a change further out.
  bool ask = next == 0 || next != depth_ || slot(next - 1) != at.sp - kWord;
  NodeRoot root = NodeRoot::kComplete;
  for (;;) {
    while (next != 0 && slot(next - 1) < at.sp - kWord) --next;
    if (ask && next != 0 && is_at(next - 1, at)) {
      const uint32_t met = next - 1;
      const uint32_t changed_at = first_changed(walk, met);
      if (changed_at == 0 && stable_end_ && met + 1 + fresh <= cap_) [[likely]] {
        if (fresh != 0) join(met, at);
        // Frames further in stay remembered: the stack may grow over them again.
        return {met + 1, fresh, (details_[met].bits & kLive) != 0, root_};
      }
      if (!adopt(walk, met, changed_at, &at, &fresh)) return {0, fresh, true, NodeRoot::kDepthCap};
      next = changed_at;
    }
    ask = true;
    uintptr_t until = at.sp;  // one step
    if (next == 0) {
      until = ~uintptr_t{0};
    } else if (hint_ != 0 && hint_ < next && slot(hint_ - 1) >= at.sp) {
      until = slot(hint_ - 1);
    }
    fresh = run(walk, &at, fresh, until, next);
    if (at.sp <= until) {
      if (at.ra == 0) {
        stable_end_ = false;  // that word may change
        return {0, fresh, true, NodeRoot::kComplete};
      }
      if (fresh == cap_) return {0, fresh, true, NodeRoot::kDepthCap};
      if (!step(walk, &at, &fresh, &root)) return {0, fresh, !stable_end_, root};
    }
  }
}

}  // namespace traceaf::emitter::unwind
