// Dynamic symbol lookup by DT_GNU_HASH, or DT_HASH where an object has only that (see elf_symbols.h).
#include "preload/elf_symbols.h"

#include <cstdint>
#include <cstring>

namespace traceaf::preload {
namespace {

struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* gnu_hash = nullptr;
  const uint32_t* sysv_hash = nullptr;
  const uint16_t* versions = nullptr;
};

Tables tables_of(ElfW(Addr) bias, const ElfW(Dyn) * dynamic) {
  Tables t;
  for (const ElfW(Dyn)* d = dynamic; d->d_tag != DT_NULL; ++d) {
    // The loader adds the bias to these, except for the vdso.
    const uintptr_t at = d->d_un.d_ptr < bias ? d->d_un.d_ptr + bias : d->d_un.d_ptr;
    if (d->d_tag == DT_SYMTAB) t.symbols = reinterpret_cast<const ElfW(Sym)*>(at);
    if (d->d_tag == DT_STRTAB) t.strings = reinterpret_cast<const char*>(at);
    if (d->d_tag == DT_GNU_HASH) t.gnu_hash = reinterpret_cast<const uint32_t*>(at);
    if (d->d_tag == DT_HASH) t.sysv_hash = reinterpret_cast<const uint32_t*>(at);
    if (d->d_tag == DT_VERSYM) t.versions = reinterpret_cast<const uint16_t*>(at);
  }
  return t;
}

bool matches(const Tables& t, uint32_t index, const char* name) {
  const ElfW(Sym)& symbol = t.symbols[index];
  if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) return false;
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  if (type != STT_FUNC && type != STT_NOTYPE && type != STT_GNU_IFUNC) return false;
  if (strcmp(t.strings + symbol.st_name, name) != 0) return false;
  return t.versions == nullptr || ((t.versions[index] & 0x8000) == 0 && t.versions[index] != 0);
}

uint32_t find_by_gnu_hash(const Tables& t, const char* name) {
  uint32_t hash = 5381;
  for (const char* c = name; *c != 0; ++c) hash = hash * 33 + static_cast<uint8_t>(*c);
  const uint32_t buckets = t.gnu_hash[0];
  const uint32_t first = t.gnu_hash[1];
  const uint32_t words = t.gnu_hash[2];
  const auto* bloom = reinterpret_cast<const uint64_t*>(t.gnu_hash + 4);
  const auto* bucket = reinterpret_cast<const uint32_t*>(bloom + words);
  const uint32_t* chain = bucket + buckets;
  const uint64_t word = bloom[hash / 64 % words];
  if ((word >> hash % 64 & word >> (hash >> t.gnu_hash[3]) % 64 & 1) == 0) return 0;
  uint32_t index = bucket[hash % buckets];
  if (index < first) return 0;
  for (;; ++index) {
    const uint32_t other = chain[index - first];
    if ((other | 1) == (hash | 1) && matches(t, index, name)) return index;
    if ((other & 1) != 0) return 0;
  }
}

uint32_t find_by_sysv_hash(const Tables& t, const char* name) {
  uint32_t hash = 0;
  for (const char* c = name; *c != 0; ++c) {
    hash = (hash << 4) + static_cast<uint8_t>(*c);
    const uint32_t high = hash & 0xf0000000;
    hash = (hash ^ high >> 24) & ~high;
  }
  const uint32_t buckets = t.sysv_hash[0];
  const uint32_t* bucket = t.sysv_hash + 2;
  const uint32_t* chain = bucket + buckets;
  for (uint32_t index = bucket[hash % buckets]; index != 0; index = chain[index]) {
    if (matches(t, index, name)) return index;
  }
  return 0;
}

}  // namespace

void* find_symbol(ElfW(Addr) bias, const ElfW(Dyn) * dynamic, const char* name) {
  if (dynamic == nullptr) return nullptr;
  const Tables t = tables_of(bias, dynamic);
  if (t.symbols == nullptr || t.strings == nullptr) return nullptr;
  uint32_t index = 0;
  if (t.gnu_hash != nullptr && t.gnu_hash[0] != 0) {
    index = find_by_gnu_hash(t, name);
  } else if (t.sysv_hash != nullptr && t.sysv_hash[0] != 0) {
    index = find_by_sysv_hash(t, name);
  }
  if (index == 0) return nullptr;
  const uintptr_t at = bias + t.symbols[index].st_value;
  if (ELF64_ST_TYPE(t.symbols[index].st_info) != STT_GNU_IFUNC) return reinterpret_cast<void*>(at);
  return reinterpret_cast<void* (*)()>(at)();
}

}  // namespace traceaf::preload
