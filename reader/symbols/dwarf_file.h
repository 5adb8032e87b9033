// The debug information of one module: a libdw handle and the map from addresses to compilation units. libdw's own
// look-up needs .debug_aranges, which clang does not write.
#pragma once

#include <elfutils/libdw.h>

#include <memory>
#include <string>
#include <vector>

#include "reader/symbols/elf_file.h"
#include "reader/symbols/interval_map.h"
#include "reader/symbols/symbolizer.h"

namespace traceaf::reader::symbols {

class DwarfFile {
 public:
  // `file` must outlive this.
  DwarfFile(const ElfFile& file, const SymbolOptions& options);
  ~DwarfFile();
  DwarfFile(const DwarfFile&) = delete;
  DwarfFile& operator=(const DwarfFile&) = delete;

  // False when there are no units to look into.
  [[nodiscard]] bool ok() const { return !units_.empty(); }
  // Why parts of it cannot be read; empty when nothing is known to be missing.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] const ElfFile& file() const { return file_; }

  // Index of the unit that holds `address`, or IntervalMap::kNone.
  uint32_t find_unit(uint64_t address);
  // Its DIEs: `unit` with the line table, `code` with the functions (another one in split DWARF). False when it cannot
  // be read. `split_missing` is set when the functions are in a .dwo file that was not found.
  bool unit(uint32_t index, Dwarf_Die& unit, Dwarf_Die& code, bool& split_missing);

 private:
  struct DwarfEnd {
    void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
  };
  void set_alternate(const SymbolOptions& options);
  void read_units();
  void read_rangeless();

  const ElfFile& file_;
  std::unique_ptr<ElfFile> alternate_file_;
  std::unique_ptr<Dwarf, DwarfEnd> alternate_;
  std::unique_ptr<Dwarf, DwarfEnd> dwarf_;
  std::vector<Dwarf_Off> units_;     // of their DIEs in .debug_info
  std::vector<uint32_t> rangeless_;  // units that do not say which code is theirs
  std::vector<Interval> intervals_;
  IntervalMap map_;
  std::string problem_;
};

}  // namespace traceaf::reader::symbols
