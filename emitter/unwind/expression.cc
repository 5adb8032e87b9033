// DWARF expressions of call frame information (see expression.h).
#include "emitter/unwind/expression.h"

#include <dwarf.h>

namespace traceaf::emitter::unwind {

namespace {

constexpr unsigned kDepth = 12;
constexpr unsigned kMaxSteps = 256;  // ends loops made of DW_OP_skip and DW_OP_bra

// A stack machine. Underflow and overflow set `bad`, after which values mean nothing.
struct Machine {
  uintptr_t stack[kDepth];
  unsigned depth = 0;
  bool bad = false;

  void push(uintptr_t value) {
    if (depth == kDepth) {
      bad = true;
    } else {
      stack[depth++] = value;
    }
  }
  uintptr_t pop() {
    if (depth == 0) {
      bad = true;
      return 0;
    }
    return stack[--depth];
  }
  // The entry `n` below the top.
  uintptr_t peek(uint64_t n) {
    if (n >= depth) {
      bad = true;
      return 0;
    }
    return stack[depth - 1 - n];
  }
};

constexpr uintptr_t shifted(uintptr_t value, uintptr_t by, bool left) {
  return by >= 64 ? 0 : left ? value << by : value >> by;
}

// Operations that take two entries and leave one. False when `op` is none of them.
bool binary(uint8_t op, Machine* m) {
  const uintptr_t b = m->depth < 1 ? 0 : m->peek(0), a = m->depth < 2 ? 0 : m->peek(1);
  const auto sa = static_cast<intptr_t>(a), sb = static_cast<intptr_t>(b);
  uintptr_t result = 0;
  switch (op) {
    case DW_OP_and:
      result = a & b;
      break;
    case DW_OP_or:
      result = a | b;
      break;
    case DW_OP_xor:
      result = a ^ b;
      break;
    case DW_OP_plus:
      result = a + b;
      break;
    case DW_OP_minus:
      result = a - b;
      break;
    case DW_OP_mul:
      result = a * b;
      break;
    case DW_OP_div:
      if (sb == 0) {
        m->bad = true;
      } else {
        result = sb == -1 ? 0 - a : static_cast<uintptr_t>(sa / sb);
      }
      break;
    case DW_OP_mod:
      if (b == 0) {
        m->bad = true;
      } else {
        result = a % b;
      }
      break;
    case DW_OP_shl:
      result = shifted(a, b, true);
      break;
    case DW_OP_shr:
      result = shifted(a, b, false);
      break;
    case DW_OP_shra:
      result = static_cast<uintptr_t>(sa >> (b >= 64 ? 63 : b));
      break;
    case DW_OP_eq:
      result = a == b;
      break;
    case DW_OP_ne:
      result = a != b;
      break;
    case DW_OP_ge:
      result = sa >= sb;
      break;
    case DW_OP_gt:
      result = sa > sb;
      break;
    case DW_OP_le:
      result = sa <= sb;
      break;
    case DW_OP_lt:
      result = sa < sb;
      break;
    default:
      return false;
  }
  m->pop();
  m->pop();
  m->push(result);
  return true;
}

// Constants. False when `op` is none.
bool constant(uint8_t op, Bytes* code, Machine* m) {
  if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
    m->push(op - DW_OP_lit0);
    return true;
  }
  switch (op) {
    case DW_OP_addr:
    case DW_OP_const8u:
    case DW_OP_const8s:
      m->push(code->fixed<uint64_t>());
      return true;
    case DW_OP_const1u:
      m->push(code->u8());
      return true;
    case DW_OP_const1s:
      m->push(static_cast<uintptr_t>(intptr_t{code->fixed<int8_t>()}));
      return true;
    case DW_OP_const2u:
      m->push(code->fixed<uint16_t>());
      return true;
    case DW_OP_const2s:
      m->push(static_cast<uintptr_t>(intptr_t{code->fixed<int16_t>()}));
      return true;
    case DW_OP_const4u:
      m->push(code->fixed<uint32_t>());
      return true;
    case DW_OP_const4s:
      m->push(static_cast<uintptr_t>(intptr_t{code->fixed<int32_t>()}));
      return true;
    case DW_OP_constu:
      m->push(code->uleb());
      return true;
    case DW_OP_consts:
      m->push(static_cast<uintptr_t>(code->sleb()));
      return true;
    default:
      return false;
  }
}

// Moves on by `distance` bytes inside [begin, code->end].
void jump(Bytes* code, const uint8_t* begin, int16_t distance) {
  if (distance < begin - code->at || distance > code->end - code->at) {
    code->fail();
  } else {
    code->at += distance;
  }
}

}  // namespace

bool known_register(uint64_t number, const Registers& regs, uintptr_t* value) {
  switch (number) {
    case kDwarfRbp:
      *value = regs.bp;
      return true;
    case kDwarfRsp:
      *value = regs.sp;
      return true;
    case kDwarfRip:
      *value = regs.ip;
      return true;
    default:
      return false;
  }
}

Outcome evaluate(Bytes code, const uintptr_t* initial, const Registers& regs, Memory* memory, uintptr_t* result) {
  const uint8_t* const begin = code.at;
  Machine m;
  if (initial != nullptr) m.push(*initial);
  for (unsigned steps = 0; !code.done(); ++steps) {
    if (steps == kMaxSteps || m.bad) return Outcome::kNoCfi;
    const uint8_t op = code.u8();
    if (constant(op, &code, &m) || binary(op, &m)) continue;
    if ((op >= DW_OP_breg0 && op <= DW_OP_breg31) || op == DW_OP_bregx) {
      const uint64_t number = op == DW_OP_bregx ? code.uleb() : uint64_t{op} - DW_OP_breg0;
      uintptr_t value = 0;
      if (!known_register(number, regs, &value)) return Outcome::kNoCfi;
      m.push(value + static_cast<uintptr_t>(code.sleb()));
      continue;
    }
    switch (op) {
      case DW_OP_nop:
        break;
      case DW_OP_dup:
        m.push(m.peek(0));
        break;
      case DW_OP_drop:
        m.pop();
        break;
      case DW_OP_over:
        m.push(m.peek(1));
        break;
      case DW_OP_pick:
        m.push(m.peek(code.u8()));
        break;
      case DW_OP_swap: {
        const uintptr_t b = m.pop(), a = m.pop();
        m.push(b);
        m.push(a);
        break;
      }
      case DW_OP_rot: {
        const uintptr_t c = m.pop(), b = m.pop(), a = m.pop();
        m.push(c);
        m.push(a);
        m.push(b);
        break;
      }
      case DW_OP_abs: {
        const uintptr_t a = m.pop();
        m.push(static_cast<intptr_t>(a) < 0 ? 0 - a : a);
        break;
      }
      case DW_OP_neg:
        m.push(0 - m.pop());
        break;
      case DW_OP_not:
        m.push(~m.pop());
        break;
      case DW_OP_plus_uconst:
        m.push(m.pop() + code.uleb());
        break;
      case DW_OP_skip:
        jump(&code, begin, code.fixed<int16_t>());
        break;
      case DW_OP_bra: {
        const auto distance = code.fixed<int16_t>();
        if (m.pop() != 0) jump(&code, begin, distance);
        break;
      }
      case DW_OP_deref:
      case DW_OP_deref_size: {
        const unsigned bytes = op == DW_OP_deref ? 8 : code.u8();
        uintptr_t value = 0;
        const uintptr_t at = m.pop();
        if (m.bad || bytes == 0 || bytes > 8) return Outcome::kNoCfi;
        if (!memory->read(at, &value)) return Outcome::kUnreadable;
        m.push(bytes == 8 ? value : value & ((uintptr_t{1} << (bytes * 8)) - 1));
        break;
      }
      default:
        return Outcome::kNoCfi;
    }
  }
  *result = m.pop();
  return code.ok && !m.bad ? Outcome::kStepped : Outcome::kNoCfi;
}

}  // namespace traceaf::emitter::unwind
