// The interpreter of call frame instructions (see cfi.h).
#include "emitter/unwind/cfi.h"

#include <dwarf.h>

#include "emitter/unwind/eh_frame.h"

namespace traceaf::emitter::unwind {

namespace {

constexpr unsigned kRemembered = 3;  // depth of DW_CFA_remember_state; compilers use 1

struct State {
  SaveRule cfa, bp, sp, ra;

  SaveRule* of(uint64_t number, uint64_t ra_register) {
    if (number == ra_register) return &ra;
    if (number == kDwarfRbp) return &bp;
    return number == kDwarfRsp ? &sp : nullptr;
  }
};

class Interpreter {
 public:
  Interpreter(const Description& description, uintptr_t pc)
      : description_(description),
        pc_(pc),
        at_(description.begin),
        base_(reinterpret_cast<uintptr_t>(description.initial.at)) {}

  bool run(Row* row) {
    if (!execute(description_.initial, false)) return false;
    initial_ = state_;
    if (!execute(description_.instructions, true)) return false;
    row->cfa = state_.cfa;
    row->bp = state_.bp;
    row->sp = state_.sp;
    row->ra = state_.ra;
    row->signal_frame = description_.signal_frame;
    row->expressions = base_;
    row->begin = description_.begin;
    return row->cfa.save != Save::kUnset;
  }

 private:
  // False when malformed or beyond what is represented. Stops where the row of pc_ is reached.
  bool execute(Program program, bool moves);
  bool extended(uint8_t op, Bytes* in);
  bool move(uint64_t steps) {
    at_ += steps * uint64_t{description_.code_align};
    return at_ > pc_;
  }
  // Sets the rule of a register, where it is one that is followed.
  bool save(uint64_t number, Save save, int64_t value = 0, uint64_t extra = 0) {
    SaveRule* rule = state_.of(number, description_.ra_register);
    if (rule == nullptr) return true;
    return fill(rule, save, value, extra);
  }
  bool fill(SaveRule* rule, Save save, int64_t value, uint64_t extra) {
    if (value < INT32_MIN || value > INT32_MAX || extra > UINT16_MAX) return false;
    *rule = {save, static_cast<uint16_t>(extra), static_cast<int32_t>(value)};
    return true;
  }
  bool save_expression(SaveRule* rule, Save save, Bytes* in) {
    const uint64_t bytes = in->uleb();
    const Bytes code = in->take(bytes);
    if (!code.ok) return false;
    if (rule == nullptr) return true;
    return fill(rule, save, static_cast<int64_t>(code.address() - base_), bytes);
  }
  int64_t scaled(int64_t factor) const {
    return static_cast<int64_t>(static_cast<uint64_t>(factor) *
                                static_cast<uint64_t>(int64_t{description_.data_align}));
  }
  SaveRule* rule_of(uint64_t number) { return state_.of(number, description_.ra_register); }
  void restore(uint64_t number) {
    SaveRule* rule = rule_of(number);
    if (rule != nullptr) *rule = *initial_.of(number, description_.ra_register);
  }
  bool cfa_register(uint64_t number, int64_t offset) { return fill(&state_.cfa, Save::kRegisterPlus, offset, number); }

  const Description& description_;
  const uintptr_t pc_;
  uintptr_t at_;          // first address of the row being built
  const uintptr_t base_;  // expressions are stored relative to it
  State state_, initial_;
  State remembered_[kRemembered];
  unsigned depth_ = 0;
};

bool Interpreter::execute(Program program, bool moves) {
  Bytes in{program.at, program.end, true};
  while (!in.done()) {
    const uint8_t byte = in.u8();
    const uint8_t low = byte & 0x3f;
    bool passed = false;
    switch (byte & 0xc0) {
      case DW_CFA_advance_loc:
        passed = move(low);
        break;
      case DW_CFA_offset:
        if (!save(low, Save::kAtCfa, scaled(static_cast<int64_t>(in.uleb())))) return false;
        break;
      case DW_CFA_restore:
        restore(low);
        break;
      default:
        switch (byte) {
          case DW_CFA_set_loc:
            at_ = read_encoded(&in, description_.encoding, 0);
            passed = at_ > pc_;
            break;
          case DW_CFA_advance_loc1:
            passed = move(in.u8());
            break;
          case DW_CFA_advance_loc2:
            passed = move(in.fixed<uint16_t>());
            break;
          case DW_CFA_advance_loc4:
            passed = move(in.fixed<uint32_t>());
            break;
          case DW_CFA_MIPS_advance_loc8:
            passed = move(in.fixed<uint64_t>());
            break;
          default:
            if (!extended(byte, &in)) return false;
        }
    }
    if (passed && moves) return in.ok;
  }
  return in.ok;
}

bool Interpreter::extended(uint8_t op, Bytes* in) {
  switch (op) {
    case DW_CFA_nop:
      return true;
    case DW_CFA_GNU_args_size:
      in->uleb();
      return true;
    case DW_CFA_remember_state:
      if (depth_ == kRemembered) return false;
      remembered_[depth_++] = state_;
      return true;
    case DW_CFA_restore_state:
      if (depth_ == 0) return false;
      state_ = remembered_[--depth_];
      return true;
    case DW_CFA_def_cfa_register:
      return cfa_register(in->uleb(), state_.cfa.value);
    case DW_CFA_def_cfa_offset:
      return cfa_register(state_.cfa.number, static_cast<int64_t>(in->uleb()));
    case DW_CFA_def_cfa_offset_sf:
      return cfa_register(state_.cfa.number, scaled(in->sleb()));
    case DW_CFA_def_cfa_expression:
      return save_expression(&state_.cfa, Save::kExpression, in);
    case DW_CFA_restore_extended:
      restore(in->uleb());
      return true;
    default:
      break;
  }
  const uint64_t number = in->uleb();
  switch (op) {
    case DW_CFA_def_cfa:
      return cfa_register(number, static_cast<int64_t>(in->uleb()));
    case DW_CFA_def_cfa_sf:
      return cfa_register(number, scaled(in->sleb()));
    case DW_CFA_offset_extended:
      return save(number, Save::kAtCfa, scaled(static_cast<int64_t>(in->uleb())));
    case DW_CFA_offset_extended_sf:
      return save(number, Save::kAtCfa, scaled(in->sleb()));
    case DW_CFA_GNU_negative_offset_extended:
      return save(number, Save::kAtCfa, -scaled(static_cast<int64_t>(in->uleb())));
    case DW_CFA_val_offset:
      return save(number, Save::kCfaPlus, scaled(static_cast<int64_t>(in->uleb())));
    case DW_CFA_val_offset_sf:
      return save(number, Save::kCfaPlus, scaled(in->sleb()));
    case DW_CFA_undefined:
      return save(number, Save::kUndefined);
    case DW_CFA_same_value:
      return save(number, Save::kSame);
    case DW_CFA_register:
      return save(number, Save::kRegister, 0, in->uleb());
    case DW_CFA_expression:
      return save_expression(rule_of(number), Save::kAtExpression, in);
    case DW_CFA_val_expression:
      return save_expression(rule_of(number), Save::kExpression, in);
    default:
      return false;
  }
}

Bytes expression(const Row& row, const SaveRule& rule) {
  const auto* at = reinterpret_cast<const uint8_t*>(row.expressions + static_cast<uintptr_t>(intptr_t{rule.value}));
  return {at, at + rule.number, true};
}

// "register + offset" as an expression, or "*(register + offset)" when `deref`.
bool is_register_plus(Bytes code, bool deref, uint64_t* number, int64_t* offset) {
  const uint8_t op = code.u8();
  if (op < DW_OP_breg0 || op > DW_OP_breg31) return false;
  *number = uint64_t{op} - DW_OP_breg0;
  *offset = code.sleb();
  if (deref && code.u8() != DW_OP_deref) return false;
  return code.ok && code.at == code.end;
}

// The caller's value of a register by `rule`.
Outcome value_of(const Row& row, const SaveRule& rule, uintptr_t cfa, const Registers& regs, Memory* memory,
                 uintptr_t unchanged, uintptr_t* value) {
  uintptr_t at = cfa + static_cast<uintptr_t>(intptr_t{rule.value});
  Outcome outcome = Outcome::kStepped;
  switch (rule.save) {
    case Save::kUnset:
    case Save::kSame:
      *value = unchanged;
      return outcome;
    case Save::kUndefined:
      *value = 0;
      return outcome;
    case Save::kCfaPlus:
      *value = at;
      return outcome;
    case Save::kRegister:
      return known_register(rule.number, regs, value) ? outcome : Outcome::kNoCfi;
    case Save::kExpression:
      return evaluate(expression(row, rule), &cfa, regs, memory, value);
    case Save::kAtExpression:
      outcome = evaluate(expression(row, rule), &cfa, regs, memory, &at);
      if (outcome != Outcome::kStepped) return outcome;
      break;
    case Save::kAtCfa:
      break;
    case Save::kRegisterPlus:
      return Outcome::kNoCfi;
  }
  return memory->read(at, value) ? outcome : Outcome::kUnreadable;
}

}  // namespace

// Its own frame, so that parsing and interpreting do not need stack at the same time.
__attribute__((noinline)) bool find_row(const Description& description, uintptr_t pc, Row* row) {
  return Interpreter(description, pc).run(row);
}

bool find_row(const ModuleRecord& module, uintptr_t pc, Row* row) {
  Description description;
  return find_description(module, pc, &description) && find_row(description, pc, row);
}

Rule pack(const Row& row, uint32_t module) {
  const Rule slow = Rule::make(Kind::kSlow, module);
  if (row.ra.save == Save::kUndefined) return Rule::make(Kind::kEnd, module);
  uint64_t number = 0;
  int64_t offset = 0;
  if (row.signal_frame) {
    // The kernel's layout, as libc describes it; anything else is evaluated in full.
    constexpr int64_t kContextRsp = 160;
    const bool usual = row.cfa.save == Save::kExpression &&
                       is_register_plus(expression(row, row.cfa), true, &number, &offset) && number == kDwarfRsp &&
                       offset == kContextRsp;
    return usual ? Rule::make(Kind::kSignal, module) : slow;
  }
  const bool plain = row.ra.save == Save::kAtCfa && row.ra.value == -8 &&
                     (row.sp.save == Save::kUnset || (row.sp.save == Save::kCfaPlus && row.sp.value == 0));
  if (!plain) return slow;

  BpRule bp = BpRule::kKept;
  int64_t saved = 0;
  switch (row.bp.save) {
    case Save::kUnset:
    case Save::kSame:
      break;
    case Save::kUndefined:
      bp = BpRule::kLost;
      break;
    case Save::kAtCfa:
#ifndef TRACEAF_BREAK_CAPTURE_RULE  // a fault for the tests: a saved rbp is forgotten
      bp = BpRule::kAtCfa;
#endif
      saved = row.bp.value;
      break;
    case Save::kAtExpression:
      if (!is_register_plus(expression(row, row.bp), false, &number, &saved) || number != kDwarfRbp) return slow;
      bp = BpRule::kAtRbp;
      break;
    default:
      return slow;
  }
  Kind kind = Kind::kRsp;
  if (row.cfa.save == Save::kRegisterPlus) {
    if (row.cfa.number != kDwarfRsp && row.cfa.number != kDwarfRbp) return slow;
    kind = row.cfa.number == kDwarfRsp ? Kind::kRsp : Kind::kRbp;
    offset = row.cfa.value;
  } else {
    if (!is_register_plus(expression(row, row.cfa), true, &number, &offset) || number != kDwarfRbp) return slow;
    kind = Kind::kRealign;
  }
  return Rule::fits(offset, saved) ? Rule::make(kind, module, bp, offset, saved) : slow;
}

Outcome apply(const Row& row, Memory* memory, Registers* regs) {
  uintptr_t cfa = 0;
  if (row.cfa.save == Save::kRegisterPlus) {
    if (!known_register(row.cfa.number, *regs, &cfa)) return Outcome::kNoCfi;
    cfa += static_cast<uintptr_t>(intptr_t{row.cfa.value});
  } else {
    const Outcome outcome = evaluate(expression(row, row.cfa), nullptr, *regs, memory, &cfa);
    if (outcome != Outcome::kStepped) return outcome;
  }
  if (row.ra.save == Save::kUndefined) return Outcome::kEnd;
  if (row.ra.save == Save::kUnset || row.ra.save == Save::kSame) return Outcome::kNoCfi;
  Registers caller{};
  Outcome outcome = value_of(row, row.ra, cfa, *regs, memory, 0, &caller.ip);
  if (outcome == Outcome::kStepped) outcome = value_of(row, row.sp, cfa, *regs, memory, cfa, &caller.sp);
  if (outcome == Outcome::kStepped) outcome = value_of(row, row.bp, cfa, *regs, memory, regs->bp, &caller.bp);
  if (outcome != Outcome::kStepped) return outcome;
  if (!row.signal_frame && caller.sp <= regs->sp) return Outcome::kUnreadable;
  if (caller.sp % sizeof(uintptr_t) != 0) return Outcome::kUnreadable;
  *regs = caller;
  return outcome;
}

}  // namespace traceaf::emitter::unwind
