// The rows read from .eh_frame equal those of libdw, for the functions of whole libraries.
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "emitter/unwind/cfi.h"

namespace traceaf::emitter::unwind {
namespace {

// A place as text, so that both sides can be compared: "cfa-16", "same", "expression 77 a0 ...".
std::string expression_text(const Dwarf_Op* ops, size_t count) {
  std::string text = "expression";
  for (size_t i = 0; i < count; ++i) text += ' ' + std::to_string(ops[i].atom) + ',' + std::to_string(ops[i].number);
  return text;
}

// The operations of an expression as libdw would list them, decoded again from the bytes (the forms that occur).
std::string expression_text(const Row& row, const SaveRule& rule) {
  Bytes in{reinterpret_cast<const uint8_t*>(row.expressions + static_cast<uintptr_t>(intptr_t{rule.value})), nullptr,
           true};
  in.end = in.at + rule.number;
  std::vector<Dwarf_Op> ops;
  while (!in.done()) {
    Dwarf_Op op{};
    op.atom = in.u8();
    if (op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31) op.number = static_cast<Dwarf_Word>(in.sleb());
    if (op.atom == DW_OP_plus_uconst || op.atom == DW_OP_constu) op.number = in.uleb();
    if (op.atom == DW_OP_const1u) op.number = in.u8();
    if (op.atom == DW_OP_const1s) op.number = static_cast<Dwarf_Word>(int64_t{in.fixed<int8_t>()});
    ops.push_back(op);
  }
  return expression_text(ops.data(), ops.size());
}

std::string ours(const Row& row, const SaveRule& rule, bool is_cfa) {
  switch (rule.save) {
    case Save::kUnset:
      return "same";
    case Save::kSame:
      return "same";
    case Save::kUndefined:
      return "undefined";
    case Save::kAtCfa:
      return "at cfa" + std::to_string(rule.value);
    case Save::kCfaPlus:
      return "cfa" + std::to_string(rule.value);
    case Save::kRegister:
      return "register " + std::to_string(rule.number);
    case Save::kRegisterPlus:
      return "register " + std::to_string(rule.number) + " plus " + std::to_string(rule.value);
    case Save::kAtExpression:
      return "at " + expression_text(row, rule);
    case Save::kExpression:
      return (is_cfa ? "" : "value ") + expression_text(row, rule);
  }
  return "?";
}

std::string theirs_cfa(Dwarf_Frame* frame) {
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  if (dwarf_frame_cfa(frame, &ops, &count) != 0) return "none";
  if (count == 1 && ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
    return "register " + std::to_string(ops[0].atom - DW_OP_breg0) + " plus " +
           std::to_string(static_cast<int64_t>(ops[0].number));
  }
  if (count == 1 && ops[0].atom == DW_OP_bregx) {
    return "register " + std::to_string(ops[0].number) + " plus " +
           std::to_string(static_cast<int64_t>(ops[0].number2));
  }
  return expression_text(ops, count);
}

std::string theirs(Dwarf_Frame* frame, int number) {
  Dwarf_Op room[3];
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  if (dwarf_frame_register(frame, number, room, &ops, &count) != 0) return "error";
  if (count == 0) return ops == nullptr ? "same" : "undefined";
  if (ops[0].atom == DW_OP_call_frame_cfa) {
    const bool value = ops[count - 1].atom == DW_OP_stack_value;
    const size_t used = value ? count - 1 : count;
    if (used == 1) return value ? "cfa0" : "at cfa0";
    if (used == 2 && ops[1].atom == DW_OP_plus_uconst) {
      return (value ? "cfa" : "at cfa") + std::to_string(static_cast<int64_t>(ops[1].number));
    }
    // The CFA is on the stack of an expression at its start.
    return (value ? "value " : "at ") + expression_text(ops + 1, used - 1);
  }
  if (count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) {
    return "register " + std::to_string(ops[0].atom - DW_OP_reg0);
  }
  if (count == 1 && ops[0].atom == DW_OP_regx) return "register " + std::to_string(ops[0].number);
  const bool value = ops[count - 1].atom == DW_OP_stack_value;
  return (value ? "value " : "at ") + expression_text(ops, value ? count - 1 : count);
}

// First addresses of all functions that the index of `record` lists.
std::vector<uintptr_t> indexed(const ModuleRecord& record) {
  const auto* header = reinterpret_cast<const uint8_t*>(record.eh_frame_hdr);
  int32_t count = 0;
  std::memcpy(&count, header + 8, 4);
  std::vector<uintptr_t> starts;
  for (int32_t i = 0; i < count; ++i) {
    int32_t distance = 0;
    std::memcpy(&distance, header + 12 + size_t{8} * static_cast<size_t>(i), 4);
    starts.push_back(record.eh_frame_hdr + static_cast<uintptr_t>(intptr_t{distance}));
  }
  return starts;
}

struct Compared {
  uint64_t rows = 0;
  std::map<Kind, uint64_t> kinds;
};

// Compares every `stride`-th function of the object that holds `pc`.
Compared compare_object(uintptr_t pc, size_t stride) {
  Compared compared;
  const uint32_t id = module_of(pc);
  const ModuleRecord* record = module_record(id);
  EXPECT_NE(record, nullptr);
  if (record == nullptr) return compared;
  elf_version(EV_CURRENT);
  const int fd = open(record->module.path, O_RDONLY);
  EXPECT_GE(fd, 0) << record->module.path;
  Elf* elf = elf_begin(fd, ELF_C_READ_MMAP, nullptr);
  Dwarf_CFI* cfi = dwarf_getcfi_elf(elf);
  EXPECT_NE(cfi, nullptr) << dwarf_errmsg(-1);
  const uintptr_t bias = record->module.bias;
  const auto starts = indexed(*record);
  EXPECT_FALSE(starts.empty());
  for (size_t i = 0; cfi != nullptr && i < starts.size(); i += stride) {
    const uintptr_t next = i + 1 < starts.size() ? starts[i + 1] : starts[i] + 1;
    for (uintptr_t at = starts[i]; at < next;) {
      Dwarf_Frame* frame = nullptr;
      Row row;
      const bool found = find_row(*record, at, &row);
      if (dwarf_cfi_addrframe(cfi, at - bias, &frame) != 0) {
        EXPECT_FALSE(found) << std::hex << at - bias;
        break;
      }
      EXPECT_TRUE(found) << record->module.path << ' ' << std::hex << at - bias << ' ' << theirs_cfa(frame);
      Dwarf_Addr begin = 0, end = 0;
      bool signal_frame = false;
      const int ra = dwarf_frame_info(frame, &begin, &end, &signal_frame);
      const std::string where = std::string(record->module.path) + " row at " + std::to_string(at - bias);
      EXPECT_EQ(ours(row, row.cfa, true), theirs_cfa(frame)) << where;
      EXPECT_EQ(ours(row, row.ra, false), theirs(frame, ra)) << where;
      EXPECT_EQ(ours(row, row.bp, false), theirs(frame, 6)) << where;
      EXPECT_EQ(row.signal_frame, signal_frame) << where;
      Row last;
      EXPECT_TRUE(find_row(*record, end + bias - 1, &last)) << where;
      EXPECT_EQ(ours(row, row.cfa, true), ours(last, last.cfa, true)) << where;
      ++compared.rows;
      ++compared.kinds[pack(row, id).kind()];
      free(frame);
      at = end + bias;
      if (testing::Test::HasFailure()) break;
    }
    if (testing::Test::HasFailure()) break;
  }
  dwarf_cfi_end(cfi);
  elf_end(elf);
  close(fd);
  return compared;
}

TEST(CfiEqualsLibdw, OfThisProgram) {
  const Compared all = compare_object(reinterpret_cast<uintptr_t>(&compare_object), 1);
  EXPECT_GT(all.rows, 1000u);
}

TEST(CfiEqualsLibdw, OfLibc) {
  Compared all = compare_object(reinterpret_cast<uintptr_t>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")), 1);
  EXPECT_GT(all.rows, 20'000u);
  EXPECT_GT(all.kinds[Kind::kSignal], 0u);
  EXPECT_GT(all.kinds[Kind::kEnd], 0u);
  EXPECT_GT(all.kinds[Kind::kSlow], 0u);  // the linkage table
}

TEST(CfiEqualsLibdw, OfLibstdcxx) {
  const Compared all = compare_object(reinterpret_cast<uintptr_t>(dlsym(RTLD_DEFAULT, "_ZSt9terminatev")), 1);
  EXPECT_GT(all.rows, 20'000u);
}

// The subjects of the stress tests have dynamically realigned frames, which gcc describes by an expression.
TEST(CfiEqualsLibdw, OfRealignedFrames) {
  uint64_t realigned = 0;
  for (const char* path : {TRACEAF_SUBJECTS}) {
    void* library = dlopen(path, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    Compared all = compare_object(reinterpret_cast<uintptr_t>(dlsym(library, "subject")), 1);
    EXPECT_GT(all.rows, 100u);
    realigned += all.kinds[Kind::kRealign];
    dlclose(library);
  }
  EXPECT_GT(realigned, 0u);
}

// Hand-written assembler with frames found by expressions and by other registers.
TEST(CfiEqualsLibdw, OfLibcrypto) {
  void* library = dlopen("libcrypto.so.3", RTLD_NOW);
  if (library == nullptr) GTEST_SKIP() << "not installed";
  const Compared all = compare_object(reinterpret_cast<uintptr_t>(dlsym(library, "SHA256_Init")), 1);
  EXPECT_GT(all.rows, 20'000u);
  dlclose(library);
}

TEST(CfiEqualsLibdw, OfAProgramBuiltByClang) {
  void* library = dlopen("libLLVM-14.so.1", RTLD_NOW);
  if (library == nullptr) GTEST_SKIP() << "not installed";
  const Compared all = compare_object(reinterpret_cast<uintptr_t>(dlsym(library, "LLVMContextCreate")), 50);
  EXPECT_GT(all.rows, 1000u);
  dlclose(library);
}

}  // namespace
}  // namespace traceaf::emitter::unwind
