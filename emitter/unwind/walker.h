// One walk of one stack, frame by frame: the rule of a frame and the step to its caller. Shared by the plain walk and
// the memo.
#pragma once

#include "emitter/unwind/cfi.h"
#include "emitter/unwind/memory.h"
#include "emitter/unwind/module_record.h"
#include "emitter/unwind/rule_cache.h"
#include "emitter/unwind/unwind.h"

namespace traceaf::emitter::unwind {

inline constexpr uintptr_t kWord = sizeof(uintptr_t);

// Why a walk is over that could not make a step.
wire::NodeRoot root_of(Outcome outcome);

class Walk {
 public:
  explicit Walk(const Bounds& bounds)
      : memory_(bounds), epoch_(settled_epoch()), table_(g_rule_table.load(std::memory_order_acquire)) {}

  [[nodiscard]] uint64_t epoch() const { return epoch_; }
  Memory& memory() { return memory_; }
  // May be null.
  [[nodiscard]] const RuleTable* table() const { return table_; }
  // Whether the module of a cached rule is known to be loaded.
  bool trusts(Rule rule) {
    if (rule.module() == trusted_) return true;
    if (!is_checked(rule.module())) return false;
    trusted_ = rule.module();
    return true;
  }

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

  // From the frame `*regs` with `rule` to its caller; `*flags` is the frame's before and the caller's afterwards.
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

}  // namespace traceaf::emitter::unwind
