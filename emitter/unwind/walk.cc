// The walk itself: one cached rule a frame, and what to do where there is none (see unwind.h).
#include "emitter/unwind/walker.h"

#include "emitter/unwind/guess.h"
#include "emitter/unwind/registered_frames.h"

extern "C" void* __libc_stack_end;  // of ld.so: the stack pointer at the entry to the process

namespace traceaf::emitter::unwind {

namespace {

using wire::NodeRoot;

constexpr unsigned kMaxSignalFrames = 64;  // a chain of forged ones must not run in circles

// The kernel's ucontext at the stack pointer of a signal trampoline.
constexpr uintptr_t kContextRbp = 120, kContextRsp = 160, kContextRip = 168;

// Whether the code at `pc` is `mov $15, %rax; syscall`, the return from a signal handler, as in libcs that give it no
// tables.
bool is_signal_return(uintptr_t pc, Memory* memory) {
  uintptr_t first = 0, second = 0;
  if (!memory->read(pc, &first) || !memory->read(pc + kWord, &second)) return false;
  constexpr uintptr_t kMovRax = 0x0f0000000fc0c748, kMovEax = 0x00050f0000000fb8,
                      kSevenBytes = (uintptr_t{1} << 56) - 1;
  return (first == kMovRax && (second & 0xff) == 0x05) || (first & kSevenBytes) == kMovEax;
}

// Instructions at a return address belong to the call before it, which may be the last of its function.
uintptr_t lookup_pc(uintptr_t ip, uint32_t flags) { return (flags & kInterrupted) != 0 ? ip : ip - 1; }

}  // namespace

NodeRoot root_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kEnd:
      return NodeRoot::kComplete;
    case Outcome::kNoCfi:
      return NodeRoot::kNoCfi;
    default:
      return NodeRoot::kUnreadable;
  }
}

Rule Walk::rule_from_tables(uintptr_t ip, uint32_t flags, Rule known) {
  const uintptr_t pc = lookup_pc(ip, flags);
  const uint32_t id = module_of(pc);
  if (id == 0) return {};
  trusted_ = id;
  if (known && known.module() == id) return known;
  Row row;
  Rule rule = Rule::make(Kind::kNone, id);
  if (find_row(*module_record(id), pc, &row)) {
    rule = pack(row, id);
  } else if (is_signal_return(ip, &memory_)) {
    rule = Rule::make(Kind::kSignal, id);
  } else if (pc != ip && find_row(*module_record(id), ip, &row) && row.begin == ip && !follows_call(ip, &memory_)) {
    // No call returns to the first instruction of a function: whoever made this stack put the address there, as
    // makecontext does. It is a signal trampoline when the tables say so, else the entry of a coroutine.
    rule = Rule::make(row.signal_frame ? Kind::kSignal : Kind::kEnd, id);
  }
  cache_rule(rule_key(ip, (flags & kInterrupted) != 0), rule);
  return rule;
}

Outcome Walk::signal_step(Registers* regs) {
  if (++signal_frames_ > kMaxSignalFrames) return Outcome::kUnreadable;
  Registers caller{};
  if (!memory_.read(regs->sp + kContextRip, &caller.ip) || !memory_.read(regs->sp + kContextRsp, &caller.sp) ||
      !memory_.read(regs->sp + kContextRbp, &caller.bp)) {
    return Outcome::kUnreadable;
  }
  // A jump to nowhere: the walk did not get to the end.
  if (caller.ip == 0) return Outcome::kNoCfi;
  *regs = caller;
  return Outcome::kStepped;
}

Outcome Walk::slow_step(Rule rule, Registers* regs, uint32_t* flags) {
  Row row;
  if (!find_row(*module_record(rule.module()), lookup_pc(regs->ip, *flags), &row)) return Outcome::kNoCfi;
  if (row.signal_frame && ++signal_frames_ > kMaxSignalFrames) return Outcome::kUnreadable;
  *flags = row.signal_frame ? uint32_t{kInterrupted} : 0;
  const Outcome outcome = apply(row, &memory_, regs);
  return outcome == Outcome::kStepped && row.signal_frame && regs->ip == 0 ? Outcome::kNoCfi : outcome;
}

Outcome Walk::rare_step(Rule rule, Registers* regs, uint32_t* flags) {
  switch (rule.kind()) {
    case Kind::kEnd:
      return Outcome::kEnd;
    case Kind::kSlow:
      return slow_step(rule, regs, flags);
    case Kind::kSignal:
      *flags = kInterrupted;
      return signal_step(regs);
    default:
      break;
  }
  // Outside every module nothing is cached, so the code has to be looked at here.
  if (!rule) {
    bool signal_frame = false;
    Outcome outcome{};
    if (step_registered(lookup_pc(regs->ip, *flags), regs, &memory_, &signal_frame, &outcome)) {
      if (signal_frame && ++signal_frames_ > kMaxSignalFrames) return Outcome::kUnreadable;
      *flags = signal_frame ? uint32_t{kInterrupted} : 0;
      return outcome;
    }
    if (is_signal_return(regs->ip, &memory_)) {
      *flags = kInterrupted;
      return signal_step(regs);
    }
  }
  // The start code of ld.so has no tables. It runs on the stack pointer that the kernel gave the process, where no
  // other frame can be, so what allocates before main is complete too.
  if (regs->sp == reinterpret_cast<uintptr_t>(__libc_stack_end)) return Outcome::kEnd;
  *flags = kGuessed;
  return guess(regs, &memory_);
}

uint32_t walk(const Start& start, const Bounds& bounds, Step* out, uint32_t cap, NodeRoot* end) {
  Walk walker(bounds);
  Registers regs{start.ra, start.cfa, start.rbp};
  uint32_t flags = 0;
  for (uint32_t n = 0;; ++n) {
    if (regs.ip == 0) {
      *end = NodeRoot::kComplete;
      return n;
    }
    if (n == cap) {
      *end = NodeRoot::kDepthCap;
      return n;
    }
    const Rule rule = walker.rule_at(regs.ip, flags);
    out[n] = {regs.ip, rule.module(), flags};
    const Outcome outcome = walker.step(rule, &regs, &flags);
    if (outcome != Outcome::kStepped) [[unlikely]] {
      *end = root_of(outcome);
      return n + 1;
    }
  }
}

void invalidate() { modules_invalidate(); }

}  // namespace traceaf::emitter::unwind
