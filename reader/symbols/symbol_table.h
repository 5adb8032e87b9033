// Function symbols of an ELF file (.symtab, .dynsym, .gnu_debugdata): the name of last resort for a code address.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "reader/symbols/elf_file.h"
#include "reader/symbols/interval_map.h"

struct Dwfl;

namespace traceaf::reader::symbols {

class SymbolTable {
 public:
  // Adds all tables of `file`, whose addresses lie `shift` above those that find() takes. The file must outlive this.
  void add(const ElfFile& file, uint64_t shift);
  // Adds what only .gnu_debugdata (xz-compressed) has.
  void add_mini_debug_info(const ElfFile& file);
  // After the last add.
  void finish();
  // The raw name of the function symbol that covers `address`; a symbol without a size covers what follows up to the
  // next symbol or the end of its section. Empty when none does.
  [[nodiscard]] std::string_view find(uint64_t address) const;
  [[nodiscard]] bool empty() const { return symbols_.empty(); }

 private:
  struct Symbol {
    uint64_t lo, size;
    std::string_view name;
    uint8_t rank;  // the lower the better: global, weak, local, without type
  };
  struct DwflEnd {
    void operator()(Dwfl* dwfl) const;
  };
  void add_symbol(uint64_t address, uint64_t size, unsigned info, std::string_view name, const CodeRanges& code);

  std::vector<Symbol> symbols_;
  IntervalMap sized_;
  std::vector<uint64_t> code_ends_;      // of symbols without size, by index
  std::unique_ptr<Dwfl, DwflEnd> mini_;  // owns the names of .gnu_debugdata
};

}  // namespace traceaf::reader::symbols
