// Reading and ordering of function symbols.
#include "reader/symbols/symbol_table.h"

#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace traceaf::reader::symbols {
namespace {

size_t leading_underscores(std::string_view name) { return std::min(name.find_first_not_of('_'), name.size()); }

// The debug file is chosen by locate(); libdwfl shall find none (and not ask a server).
int no_debug_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) {
  return -1;
}

int no_elf_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**) { return -1; }

constexpr Dwfl_Callbacks kCallbacks = {no_elf_file, no_debug_file, dwfl_offline_section_address, nullptr};

}  // namespace

void SymbolTable::DwflEnd::operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }

void SymbolTable::add_symbol(uint64_t address, uint64_t size, unsigned info, std::string_view name,
                             const CodeRanges& code) {
  const unsigned type = GELF_ST_TYPE(info), binding = GELF_ST_BIND(info);
  if (name.empty() || (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)) return;
  if (type == STT_NOTYPE && (code.end_of(address) == 0 || name.starts_with(".L") || name.starts_with("$"))) return;
  if (size > std::numeric_limits<uint64_t>::max() - address) return;
  const unsigned rank = (type == STT_NOTYPE ? 4 : 0) + (binding == STB_GLOBAL ? 0 : binding == STB_WEAK ? 1 : 2);
  symbols_.push_back({address, size, name, static_cast<uint8_t>(rank)});
  code_ends_.push_back(code.end_of(address));
}

void SymbolTable::add(const ElfFile& file, uint64_t shift) {
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(file.elf(), section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr) continue;
    const size_t entry = gelf_fsize(file.elf(), ELF_T_SYM, 1, EV_CURRENT);
    const size_t count = std::min<size_t>(entry == 0 ? 0 : data->d_size / entry, std::numeric_limits<int>::max());
    for (size_t i = 1; i < count; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_COMMON) continue;
      const char* name = elf_strptr(file.elf(), header.sh_link, symbol.st_name);
      if (name == nullptr) continue;
      const size_t before = symbols_.size();
      add_symbol(symbol.st_value, symbol.st_size, symbol.st_info, name, file.code());
      if (symbols_.size() == before) continue;
      symbols_.back().lo -= shift;
      if (code_ends_.back() != 0) code_ends_.back() -= shift;
    }
  }
}

void SymbolTable::add_mini_debug_info(const ElfFile& file) {
  std::unique_ptr<Dwfl, DwflEnd> dwfl(dwfl_begin(&kCallbacks));
  if (dwfl == nullptr) return;
  const int fd = dup(file.fd());
  if (fd < 0) return;
  Dwfl_Module* module = dwfl_report_offline(dwfl.get(), "module", file.path().c_str(), fd);
  if (module == nullptr) {
    close(fd);
    return;
  }
  dwfl_report_end(dwfl.get(), nullptr, nullptr);
  GElf_Addr bias = 0;
  if (dwfl_module_getelf(module, &bias) == nullptr) return;
  const int count = dwfl_module_getsymtab(module);
  for (int i = 1; i < count; ++i) {
    GElf_Sym symbol;
    GElf_Addr address = 0;
    GElf_Word section = 0;
    const char* name = dwfl_module_getsym_info(module, i, &symbol, &address, &section, nullptr, nullptr);
    if (name == nullptr || section == SHN_UNDEF) continue;
    add_symbol(address - bias, symbol.st_size, symbol.st_info, name, file.code());
  }
  mini_ = std::move(dwfl);
}

void SymbolTable::finish() {
  std::vector<size_t> order(symbols_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  // The best name of several for the same code comes last, where both look-ups find it.
  std::sort(order.begin(), order.end(), [this](size_t x, size_t y) {
    const Symbol &a = symbols_[x], &b = symbols_[y];
    if (a.lo != b.lo) return a.lo < b.lo;
    if ((a.size == 0) != (b.size == 0)) return a.size == 0;
    if (a.size != b.size) return a.size > b.size;
    if (a.rank != b.rank) return a.rank > b.rank;
    const size_t ua = leading_underscores(a.name), ub = leading_underscores(b.name);
    if (ua != ub) return ua > ub;
    if (a.name.size() != b.name.size()) return a.name.size() > b.name.size();
    return a.name > b.name;
  });
  std::vector<Symbol> sorted;
  std::vector<uint64_t> ends;
  std::vector<Interval> intervals;
  sorted.reserve(order.size());
  ends.reserve(order.size());
  for (const size_t i : order) {
    const Symbol& symbol = symbols_[i];
    if (!sorted.empty() && sorted.back().lo == symbol.lo && sorted.back().size == symbol.size) {
      sorted.back() = symbol;
      ends.back() = code_ends_[i];
    } else {
      sorted.push_back(symbol);
      ends.push_back(code_ends_[i]);
    }
  }
  for (uint32_t i = 0; i < sorted.size(); ++i) {
    // A label without type inside a function does not take over the rest of it.
    const uint32_t depth = sorted[i].rank >= 4 ? 0 : 1;
    if (sorted[i].size != 0) intervals.push_back({sorted[i].lo, sorted[i].lo + sorted[i].size, depth, i});
  }
  symbols_ = std::move(sorted);
  code_ends_ = std::move(ends);
  sized_ = IntervalMap(std::move(intervals));
}

std::string_view SymbolTable::find(uint64_t address) const {
  if (const uint32_t i = sized_.find(address); i != IntervalMap::kNone) return symbols_[i].name;
  auto it =
      std::upper_bound(symbols_.begin(), symbols_.end(), address, [](uint64_t a, const Symbol& s) { return a < s.lo; });
  if (it == symbols_.begin()) return {};
  --it;
  const uint64_t end = code_ends_[static_cast<size_t>(it - symbols_.begin())];
  return it->size == 0 && address < end ? it->name : std::string_view();
}

}  // namespace traceaf::reader::symbols
