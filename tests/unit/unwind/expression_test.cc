// The evaluator of DWARF expressions: each operation, and what it refuses.
#include "emitter/unwind/expression.h"

#include <dwarf.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

namespace traceaf::emitter::unwind {
namespace {

struct Result {
  Outcome outcome;
  uintptr_t value;
  bool operator==(const Result&) const = default;
};

uintptr_t g_words[4] = {0x1122334455667788, 2, 3, 4};

Result run(const std::vector<uint8_t>& code, const uintptr_t* initial = nullptr) {
  Memory memory({0, 0});
  const Registers regs{0x1000, reinterpret_cast<uintptr_t>(g_words), 0x3000};
  Result result{Outcome::kEnd, 0};
  result.outcome = evaluate({code.data(), code.data() + code.size(), true}, initial, regs, &memory, &result.value);
  return result;
}

Result value(uintptr_t v) { return {Outcome::kStepped, v}; }

void expect_refused(const std::vector<uint8_t>& code) { EXPECT_EQ(run(code).outcome, Outcome::kNoCfi); }

TEST(Expression, Constants) {
  EXPECT_EQ(run({DW_OP_lit0}), value(0));
  EXPECT_EQ(run({DW_OP_lit31}), value(31));
  EXPECT_EQ(run({DW_OP_const1u, 0xff}), value(255));
  EXPECT_EQ(run({DW_OP_const1s, 0xff}), value(~uintptr_t{0}));
  EXPECT_EQ(run({DW_OP_const2u, 0xff, 0x80}), value(0x80ff));
  EXPECT_EQ(run({DW_OP_const2s, 0xff, 0x80}), value(static_cast<uintptr_t>(intptr_t{-0x7f01})));
  EXPECT_EQ(run({DW_OP_const4u, 0, 0, 0, 0x80}), value(0x80000000));
  EXPECT_EQ(run({DW_OP_const4s, 0, 0, 0, 0x80}), value(0xffffffff80000000));
  EXPECT_EQ(run({DW_OP_const8u, 1, 2, 3, 4, 5, 6, 7, 8}), value(0x0807060504030201));
  EXPECT_EQ(run({DW_OP_addr, 1, 2, 3, 4, 5, 6, 7, 8}), value(0x0807060504030201));
  EXPECT_EQ(run({DW_OP_constu, 0x80, 0x01}), value(128));
  EXPECT_EQ(run({DW_OP_consts, 0x7f}), value(~uintptr_t{0}));
}

TEST(Expression, Registers) {
  EXPECT_EQ(run({DW_OP_breg6, 8}), value(0x3008));
  EXPECT_EQ(run({DW_OP_breg7, 0x78}), value(reinterpret_cast<uintptr_t>(g_words) - 8));
  EXPECT_EQ(run({DW_OP_breg16, 0}), value(0x1000));
  EXPECT_EQ(run({DW_OP_bregx, 6, 16}), value(0x3010));
  expect_refused({DW_OP_breg0, 0});
  expect_refused({DW_OP_breg10, 0});
  expect_refused({DW_OP_bregx, 60, 0});
}

TEST(Expression, Memory) {
  EXPECT_EQ(run({DW_OP_breg7, 0, DW_OP_deref}), value(g_words[0]));
  EXPECT_EQ(run({DW_OP_breg7, 8, DW_OP_deref}), value(2));
  EXPECT_EQ(run({DW_OP_breg7, 0, DW_OP_deref_size, 1}), value(0x88));
  EXPECT_EQ(run({DW_OP_breg7, 0, DW_OP_deref_size, 4}), value(0x55667788));
  EXPECT_EQ(run({DW_OP_breg7, 0, DW_OP_deref_size, 8}), value(g_words[0]));
  EXPECT_EQ(run({DW_OP_lit16, DW_OP_deref}).outcome, Outcome::kUnreadable);
  expect_refused({DW_OP_breg7, 0, DW_OP_deref_size, 0});
  expect_refused({DW_OP_breg7, 0, DW_OP_deref_size, 9});
}

TEST(Expression, Arithmetic) {
  EXPECT_EQ(run({DW_OP_lit7, DW_OP_lit2, DW_OP_plus}), value(9));
  EXPECT_EQ(run({DW_OP_lit7, DW_OP_lit2, DW_OP_minus}), value(5));
  EXPECT_EQ(run({DW_OP_lit7, DW_OP_lit2, DW_OP_mul}), value(14));
  EXPECT_EQ(run({DW_OP_lit7, DW_OP_lit2, DW_OP_div}), value(3));
  EXPECT_EQ(run({DW_OP_lit7, DW_OP_lit2, DW_OP_mod}), value(1));
  EXPECT_EQ(run({DW_OP_lit7, DW_OP_lit2, DW_OP_and}), value(2));
  EXPECT_EQ(run({DW_OP_lit4, DW_OP_lit2, DW_OP_or}), value(6));
  EXPECT_EQ(run({DW_OP_lit7, DW_OP_lit2, DW_OP_xor}), value(5));
  EXPECT_EQ(run({DW_OP_lit1, DW_OP_lit4, DW_OP_shl}), value(16));
  EXPECT_EQ(run({DW_OP_const1s, 0xf0, DW_OP_lit4, DW_OP_shr}), value(~uintptr_t{0} >> 4));
  EXPECT_EQ(run({DW_OP_const1s, 0xf0, DW_OP_lit4, DW_OP_shra}), value(~uintptr_t{0}));
  EXPECT_EQ(run({DW_OP_lit1, DW_OP_const1u, 64, DW_OP_shl}), value(0));
  EXPECT_EQ(run({DW_OP_const1s, 0xf0, DW_OP_const1u, 200, DW_OP_shra}), value(~uintptr_t{0}));
  EXPECT_EQ(run({DW_OP_lit3, DW_OP_neg}), value(~uintptr_t{0} - 2));
  EXPECT_EQ(run({DW_OP_lit3, DW_OP_neg, DW_OP_abs}), value(3));
  EXPECT_EQ(run({DW_OP_lit0, DW_OP_not}), value(~uintptr_t{0}));
  EXPECT_EQ(run({DW_OP_lit3, DW_OP_plus_uconst, 0x80, 1}), value(131));
  // The one quotient that overflows.
  EXPECT_EQ(run({DW_OP_lit1, DW_OP_const1u, 63, DW_OP_shl, DW_OP_const1s, 0xff, DW_OP_div}), value(uintptr_t{1} << 63));
  expect_refused({DW_OP_lit1, DW_OP_lit0, DW_OP_div});
  expect_refused({DW_OP_lit1, DW_OP_lit0, DW_OP_mod});
}

TEST(Expression, Comparisons) {
  EXPECT_EQ(run({DW_OP_const1s, 0xff, DW_OP_lit1, DW_OP_lt}), value(1));
  EXPECT_EQ(run({DW_OP_const1s, 0xff, DW_OP_lit1, DW_OP_ge}), value(0));
  EXPECT_EQ(run({DW_OP_lit2, DW_OP_lit2, DW_OP_ge}), value(1));
  EXPECT_EQ(run({DW_OP_lit2, DW_OP_lit2, DW_OP_gt}), value(0));
  EXPECT_EQ(run({DW_OP_lit2, DW_OP_lit2, DW_OP_le}), value(1));
  EXPECT_EQ(run({DW_OP_lit2, DW_OP_lit2, DW_OP_eq}), value(1));
  EXPECT_EQ(run({DW_OP_lit2, DW_OP_lit2, DW_OP_ne}), value(0));
}

TEST(Expression, Stack) {
  const uintptr_t cfa = 77;
  EXPECT_EQ(run({}, &cfa), value(77));
  EXPECT_EQ(run({DW_OP_plus_uconst, 3}, &cfa), value(80));
  EXPECT_EQ(run({DW_OP_lit1, DW_OP_lit2, DW_OP_drop}), value(1));
  EXPECT_EQ(run({DW_OP_lit1, DW_OP_dup, DW_OP_plus}), value(2));
  EXPECT_EQ(run({DW_OP_lit7, DW_OP_lit2, DW_OP_over, DW_OP_minus}), value(uintptr_t{2} - 7));
  EXPECT_EQ(run({DW_OP_lit7, DW_OP_lit2, DW_OP_lit1, DW_OP_pick, 2}), value(7));
  EXPECT_EQ(run({DW_OP_lit7, DW_OP_lit2, DW_OP_swap, DW_OP_minus}), value(uintptr_t{2} - 7));
  EXPECT_EQ(run({DW_OP_lit7, DW_OP_lit2, DW_OP_lit1, DW_OP_rot, DW_OP_drop}), value(7));
  EXPECT_EQ(run({DW_OP_lit7, DW_OP_lit2, DW_OP_lit1, DW_OP_rot}), value(2));
  EXPECT_EQ(run({DW_OP_lit7, DW_OP_nop}), value(7));
  expect_refused({});
  expect_refused({DW_OP_drop});
  expect_refused({DW_OP_lit1, DW_OP_plus});
  expect_refused({DW_OP_lit1, DW_OP_pick, 1});
  expect_refused(std::vector<uint8_t>(100, DW_OP_lit1));
}

TEST(Expression, Jumps) {
  EXPECT_EQ(run({DW_OP_lit1, DW_OP_skip, 1, 0, DW_OP_lit2, DW_OP_nop}), value(1));
  EXPECT_EQ(run({DW_OP_lit1, DW_OP_lit0, DW_OP_bra, 1, 0, DW_OP_lit2}), value(2));
  EXPECT_EQ(run({DW_OP_lit1, DW_OP_lit1, DW_OP_bra, 1, 0, DW_OP_lit2}), value(1));
  expect_refused({DW_OP_skip, 0xfd, 0xff});                    // for ever
  expect_refused({DW_OP_lit1, DW_OP_skip, 2, 0, DW_OP_lit2});  // past the end
  expect_refused({DW_OP_lit1, DW_OP_skip, 0xf0, 0xff});
}

// The linkage table: CFA = rsp + 8, and 8 more once the stub has pushed its index.
TEST(Expression, LinkageTable) {
  const std::vector<uint8_t> code = {DW_OP_breg7, 8,        DW_OP_breg16, 0,         DW_OP_lit15, DW_OP_and,
                                     DW_OP_lit11, DW_OP_ge, DW_OP_lit3,   DW_OP_shl, DW_OP_plus};
  for (const uintptr_t ip : {uintptr_t{0x1000}, uintptr_t{0x100a}, uintptr_t{0x100b}, uintptr_t{0x100f}}) {
    Memory memory({0, 0});
    uintptr_t cfa = 0;
    ASSERT_EQ(evaluate({code.data(), code.data() + code.size(), true}, nullptr, {ip, 0x2000, 0}, &memory, &cfa),
              Outcome::kStepped);
    EXPECT_EQ(cfa, (ip & 15) >= 11 ? 0x2010u : 0x2008u);
  }
}

TEST(Expression, RefusesWhatIsCutShort) {
  expect_refused({DW_OP_const8u, 1, 2, 3});
  expect_refused({DW_OP_breg7});
  expect_refused({DW_OP_breg7, 0x80});
  expect_refused({DW_OP_lit1, DW_OP_bra, 0});
  expect_refused({DW_OP_call_frame_cfa});
  expect_refused({DW_OP_lit1, DW_OP_stack_value});
}

TEST(Expression, EndsOnJunk) {
  std::mt19937 random(7);
  unsigned stepped = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::vector<uint8_t> code(random() % 24);
    for (uint8_t& byte : code)
      byte = random() % 2 == 0 ? static_cast<uint8_t>(random()) : static_cast<uint8_t>(DW_OP_dup + random() % 0x60);
    stepped += run(code).outcome == Outcome::kStepped ? 1 : 0;
  }
  EXPECT_GT(stepped, 1000u);
}

}  // namespace
}  // namespace traceaf::emitter::unwind
