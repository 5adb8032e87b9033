// The recorder's clock (see clock.h): a minimal look-up of one symbol in the vDSO's dynamic section.
#include "emitter/clock.h"

#include <elf.h>
#include <sys/auxv.h>
#include <cstring>

#include "emitter/sys.h"

namespace traceaf::emitter {
namespace {

using GetTime = int (*)(clockid_t, timespec*);
constinit GetTime g_vdso_gettime = nullptr;

GetTime find_vdso_gettime() {
  const auto base = static_cast<uintptr_t>(getauxval(AT_SYSINFO_EHDR));
  if (base == 0) return nullptr;
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(base);
  const auto* segments = reinterpret_cast<const Elf64_Phdr*>(base + header->e_phoff);
  const Elf64_Dyn* dynamic = nullptr;
  uintptr_t bias = base;
  for (int i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type == PT_LOAD && segments[i].p_offset == 0) bias = base - segments[i].p_vaddr;
    if (segments[i].p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const Elf64_Dyn*>(base + segments[i].p_offset);
  }
  if (dynamic == nullptr) return nullptr;
  const Elf64_Sym* symbols = nullptr;
  const char* strings = nullptr;
  const Elf32_Word* hash = nullptr;
  for (const Elf64_Dyn* d = dynamic; d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const Elf64_Sym*>(bias + d->d_un.d_ptr);
    if (d->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(bias + d->d_un.d_ptr);
    if (d->d_tag == DT_HASH) hash = reinterpret_cast<const Elf32_Word*>(bias + d->d_un.d_ptr);
  }
  if (symbols == nullptr || strings == nullptr || hash == nullptr) return nullptr;
  for (Elf32_Word i = 0; i < hash[1]; ++i) {  // hash[1]: number of chains = of symbols
    if (symbols[i].st_shndx != SHN_UNDEF && strcmp(strings + symbols[i].st_name, "__vdso_clock_gettime") == 0)
      return reinterpret_cast<GetTime>(bias + symbols[i].st_value);
  }
  return nullptr;
}

uint64_t read_clock(clockid_t clock) {
  timespec t{};
  if (g_vdso_gettime == nullptr || g_vdso_gettime(clock, &t) != 0) sys::call(SYS_clock_gettime, clock, sys::word(&t));
  return static_cast<uint64_t>(t.tv_sec) * 1000000000 + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace

void clock_init() { g_vdso_gettime = find_vdso_gettime(); }
uint64_t clock_now() { return read_clock(CLOCK_MONOTONIC); }
uint64_t clock_wall_ns() { return read_clock(CLOCK_REALTIME); }

}  // namespace traceaf::emitter
