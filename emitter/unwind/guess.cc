// Steps over code without tables (see guess.h).
#include "emitter/unwind/guess.h"

#include "emitter/unwind/module_record.h"

namespace traceaf::emitter::unwind {

namespace {

constexpr uintptr_t kWord = sizeof(uintptr_t);
constexpr uintptr_t kLongestCall = 7;
constexpr uintptr_t kFirstPage = 4096;
constexpr uintptr_t kUserEnd = uintptr_t{1} << 47;

// Whether the 7 bytes before `end` close with a call.
bool ends_in_call(const uint8_t* end) {
  if (end[-5] == 0xe8) return true;  // call rel32
  // call r/m64 is ff /2; its length depends on the addressing form.
  for (int bytes = 2; bytes <= static_cast<int>(kLongestCall); ++bytes) {
    if (end[-bytes] != 0xff || (end[1 - bytes] >> 3 & 7) != 2) continue;
    const unsigned mod = end[1 - bytes] >> 6, rm = end[1 - bytes] & 7;
    const int sib = mod != 3 && rm == 4 ? 1 : 0;
    int displacement = mod == 1 ? 1 : mod == 2 ? 4 : 0;
    if (mod == 0 && (rm == 5 || (sib == 1 && (end[2 - bytes] & 7) == 5))) displacement = 4;
    if (2 + sib + displacement == bytes) return true;
  }
  return false;
}

// Code of no ELF object. Whether its page may be executed cannot be asked at a price a walk can pay, so data that looks
// like a call passes; but not the stack itself, where the words of a frame pointer that is data mostly lead.
bool follows_generated_call(uintptr_t ra, Memory* memory) {
  if (ra < kFirstPage || ra >= kUserEnd || memory->inside(ra)) return false;
  uintptr_t before = 0, behind = 0;
  if (!memory->read(ra - kWord, &before) || !memory->read(ra, &behind)) return false;
  const auto* bytes = reinterpret_cast<const uint8_t*>(&before);
  return ends_in_call(bytes + kWord);
}

}  // namespace

bool follows_call(uintptr_t ra, Memory* memory) {
  const uint32_t id = module_of(ra);
  if (id == 0) return follows_generated_call(ra, memory);
  const ModuleRecord* record = module_record(id);
  if (!record->executes(ra - kLongestCall) || !record->executes(ra)) return false;
  const Bytes code = record->readable_from(ra - kLongestCall);
  return code.left() >= kLongestCall && ends_in_call(code.at + kLongestCall);
}

Outcome guess(Registers* regs, Memory* memory) {
  Registers caller{};
  if (regs->bp < regs->sp || regs->bp % kWord != 0) return Outcome::kNoCfi;
  if (!memory->read(regs->bp, &caller.bp) || !memory->read(regs->bp + kWord, &caller.ip)) return Outcome::kNoCfi;
  if (!follows_call(caller.ip, memory)) return Outcome::kNoCfi;
  caller.sp = regs->bp + 2 * kWord;
  *regs = caller;
  return Outcome::kStepped;
}

}  // namespace traceaf::emitter::unwind
