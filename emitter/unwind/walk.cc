// The walk itself: one cached rule a frame, and what to do where there is none (see unwind.h).
#include "emitter/unwind/cfi.h"
#include "emitter/unwind/memory.h"
#include "emitter/unwind/module_record.h"
#include "emitter/unwind/rule_cache.h"
#include "emitter/unwind/unwind.h"

extern "C" void* __libc_stack_end;  // of ld.so: the stack pointer at the entry to the process

namespace traceaf::emitter::unwind {

namespace {

using wire::NodeRoot;

constexpr uintptr_t kWord = sizeof(uintptr_t);
constexpr unsigned kMaxSignalFrames = 64;  // a chain of forged ones must not run in circles

// The kernel's ucontext at the stack pointer of a signal trampoline.
constexpr uintptr_t kContextRbp = 120, kContextRsp = 160, kContextRip = 168;

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

// Whether the code at `pc` is `mov $15, %rax; syscall`, the return from a signal handler, as in libcs that give it no
// tables.
bool is_signal_return(uintptr_t pc, Memory* memory) {
  uintptr_t first = 0, second = 0;
  if (!memory->read(pc, &first) || !memory->read(pc + kWord, &second)) return false;
  constexpr uintptr_t kMovRax = 0x0f0000000fc0c748, kMovEax = 0x00050f0000000fb8,
                      kSevenBytes = (uintptr_t{1} << 56) - 1;
  return (first == kMovRax && (second & 0xff) == 0x05) || (first & kSevenBytes) == kMovEax;
}

// Whether a call instruction ends right before `ra`, and `ra` is in code of an ELF object.
bool follows_call(uintptr_t ra) {
  const ModuleRecord* record = module_record(module_of(ra));
  if (record == nullptr || !record->executes(ra - 7) || !record->executes(ra)) return false;
  const Bytes code = record->readable_from(ra - 7);
  if (code.left() < 7) return false;
  const uint8_t* end = code.at + 7;
  if (end[-5] == 0xe8) return true;  // call rel32
  // call r/m64 is ff /2; its length depends on the addressing form.
  for (int bytes = 2; bytes <= 7; ++bytes) {
    if (end[-bytes] != 0xff || (end[1 - bytes] >> 3 & 7) != 2) continue;
    const unsigned mod = end[1 - bytes] >> 6, rm = end[1 - bytes] & 7;
    const int sib = mod != 3 && rm == 4 ? 1 : 0;
    int displacement = mod == 1 ? 1 : mod == 2 ? 4 : 0;
    if (mod == 0 && (rm == 5 || (sib == 1 && (end[2 - bytes] & 7) == 5))) displacement = 4;
    if (2 + sib + displacement == bytes) return true;
  }
  return false;
}

// Code without tables: believes the frame pointer where it leads up the stack to a call in known code. A function that
// did not set one up is its caller's, which this then leaves out; such steps are marked kGuessed.
Outcome guess(Registers* regs, Memory* memory) {
  Registers caller{};
  if (regs->bp < regs->sp || regs->bp % kWord != 0) return Outcome::kNoCfi;
  if (!memory->read(regs->bp, &caller.bp) || !memory->read(regs->bp + kWord, &caller.ip)) return Outcome::kNoCfi;
  if (!follows_call(caller.ip)) return Outcome::kNoCfi;
  caller.sp = regs->bp + 2 * kWord;
  *regs = caller;
  return Outcome::kStepped;
}

class Walk {
 public:
  explicit Walk(const Bounds& bounds)
      : memory_(bounds), epoch_(settled_epoch()), table_(g_rule_table.load(std::memory_order_acquire)) {}

  // The rule for the frame at `ip`, whose module was seen to be loaded in this epoch or in this walk. An empty rule: no
  // module.
  Rule rule_at(uintptr_t ip, uint32_t flags) {
    Rule rule;
    if (table_ != nullptr) [[likely]]
      rule = table_->find(rule_key(ip, (flags & kInterrupted) != 0));
    // What is on the stack of a running walk stays loaded, so one check a walk is enough for each module.
    if (rule && (rule.module() == trusted_ || is_checked(rule.module()))) [[likely]] {
      trusted_ = rule.module();
      return rule;
    }
    return rule_from_tables(ip, flags, rule);
  }

  Outcome step(Rule rule, Registers* regs, uint32_t* flags) {
    uintptr_t cfa = 0;
    if (rule.kind() == Kind::kRsp || rule.kind() == Kind::kRbp) [[likely]] {
      cfa = (rule.kind() == Kind::kRsp ? regs->sp : regs->bp) + static_cast<uintptr_t>(rule.cfa());
    } else if (rule.kind() == Kind::kRealign) {
      if (!memory_.read(regs->bp + static_cast<uintptr_t>(rule.cfa()), &cfa)) return Outcome::kUnreadable;
    } else {
      return rare_step(rule, regs, flags);
    }
    *flags = 0;
    if (cfa <= regs->sp || cfa % kWord != 0) [[unlikely]]
      return Outcome::kUnreadable;
    if (!memory_.read(cfa - kWord, &regs->ip)) [[unlikely]]
      return Outcome::kUnreadable;
    regs->sp = cfa;
    if (rule.bp() == BpRule::kKept) return Outcome::kStepped;
    if (rule.bp() == BpRule::kLost) [[unlikely]] {
      regs->bp = 0;
      return Outcome::kStepped;
    }
    const uintptr_t base = rule.bp() == BpRule::kAtCfa ? cfa : regs->bp;
    return memory_.read(base + static_cast<uintptr_t>(rule.saved()), &regs->bp) ? Outcome::kStepped
                                                                                : Outcome::kUnreadable;
  }

 private:
  bool is_checked(uint32_t id) const { return module_record(id)->checked.load(std::memory_order_acquire) == epoch_; }
  __attribute__((noinline)) Rule rule_from_tables(uintptr_t ip, uint32_t flags, Rule known);
  __attribute__((noinline)) Outcome rare_step(Rule rule, Registers* regs, uint32_t* flags);
  __attribute__((noinline)) Outcome signal_step(Registers* regs);
  __attribute__((noinline)) Outcome slow_step(Rule rule, Registers* regs, uint32_t* flags);

  Memory memory_;
  const uint64_t epoch_;
  const RuleTable* const table_;
  uint32_t trusted_ = 0;  // id of the last module that was checked
  unsigned signal_frames_ = 0;
};

// Instructions at a return address belong to the call before it, which may be the last of its function.
uintptr_t lookup_pc(uintptr_t ip, uint32_t flags) { return (flags & kInterrupted) != 0 ? ip : ip - 1; }

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
  } else if (pc != ip && find_row(*module_record(id), ip, &row) && row.begin == ip && !follows_call(ip)) {
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
  if (!rule && is_signal_return(regs->ip, &memory_)) {
    *flags = kInterrupted;
    return signal_step(regs);
  }
  // The start code of ld.so has no tables. It runs on the stack pointer that the kernel gave the process, where no
  // other frame can be, so what allocates before main is complete too.
  if (regs->sp == reinterpret_cast<uintptr_t>(__libc_stack_end)) return Outcome::kEnd;
  *flags = kGuessed;
  return guess(regs, &memory_);
}

}  // namespace

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
