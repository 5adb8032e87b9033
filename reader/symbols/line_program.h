// A line number program of .debug_line, DWARF 2 to 5. It is run for a sorted list of addresses in one pass and its rows
// are not kept, so that the largest compilation unit costs no memory. (libdw keeps every row of every unit it touched
// and merges live sequences with those of discarded functions, which both end up at the same addresses.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reader/symbols/elf_file.h"

namespace traceaf::reader::symbols {

struct LineHit {
  uint32_t file = 0, line = 0, column = 0;  // line 0: unknown
  bool found = false;
  // Not 0 when the row itself has no line: where the row begins that the line was taken from, the nearest one before
  // of the same file and sequence. It may belong to another function.
  uint64_t borrowed_from = 0;
};

class LineProgram {
 public:
  // Reads the header of the program at `offset` in .debug_line of `elf` (`split`: in .debug_line.dwo). `directory` is
  // the unit's DW_AT_comp_dir. Afterwards ok() tells whether that was possible.
  LineProgram(Elf* elf, uint64_t offset, std::string directory, bool split);
  [[nodiscard]] bool ok() const { return ok_; }
  // Lines for `addresses` (ascending). Sequences outside `code` belong to discarded functions and are skipped.
  std::vector<LineHit> find(const std::vector<uint64_t>& addresses, const CodeRanges& code);
  // Path of the file by its number in the program (also DW_AT_call_file); empty when there is no such file.
  const std::string& file(uint64_t number);

 private:
  struct Name {
    std::string_view name;
    uint64_t directory = 0;
  };
  class Reader;
  [[nodiscard]] std::string path_of(const Name& entry) const;
  bool read_header(Reader& in);
  bool read_tables_v5(Reader& in, unsigned offset_bytes);
  bool read_tables_v4(Reader& in);

  std::string_view section_, strings_, line_strings_;
  std::string comp_dir_;
  std::vector<std::string_view> directories_;
  std::vector<Name> files_;
  std::unordered_map<uint64_t, std::string> paths_;  // those asked for
  std::string_view program_;
  std::string_view opcode_lengths_;
  unsigned version_ = 0;
  uint8_t min_instruction_ = 1, line_range_ = 1, opcode_base_ = 1;
  int8_t line_base_ = 0;
  bool ok_ = false;
};

}  // namespace traceaf::reader::symbols
