// One ELF file on this machine: opened, identified, and the few facts of it that the search for symbols needs.
#pragma once

#include <libelf.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace traceaf::reader::symbols {

struct CodeRange {
  uint64_t lo = 0, hi = 0;
};

// Executable addresses of a file; an answer of "no" means that nothing there can be on a stack.
class CodeRanges {
 public:
  void add(uint64_t lo, uint64_t hi);
  void finish();  // after the last add
  // True also when nothing is known.
  [[nodiscard]] bool holds(uint64_t address) const;
  // End of the range that holds `address`, or 0.
  [[nodiscard]] uint64_t end_of(uint64_t address) const;

 private:
  std::vector<CodeRange> ranges_;
};

class ElfFile {
 public:
  struct DebugLink {
    std::string name;
    uint32_t crc = 0;
  };

  // nullptr with the reason in `why` when `path` is no readable ELF file. Devices and FIFOs are not opened.
  static std::unique_ptr<ElfFile> open(const std::string& path, std::string& why);
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  [[nodiscard]] Elf* elf() const { return elf_; }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& build_id() const { return build_id_; }  // lower-case hex, empty when it has none
  [[nodiscard]] const CodeRanges& code() const { return code_; }
  [[nodiscard]] bool has_debug_info() const { return has_debug_info_; }
  [[nodiscard]] bool has_symtab() const { return has_symtab_; }
  [[nodiscard]] bool has_mini_debug_info() const { return has_mini_debug_info_; }
  [[nodiscard]] const std::optional<DebugLink>& debug_link() const { return debug_link_; }
  // How far the addresses of `other`, a file of the same object, lie above those of this file.
  [[nodiscard]] uint64_t shift_of(const ElfFile& other) const;
  // CRC of the whole file as .gnu_debuglink has it; nothing when it cannot be read.
  [[nodiscard]] std::optional<uint32_t> crc() const;

 private:
  ElfFile() = default;
  void read_sections();
  void read_segments();

  int fd_ = -1;
  Elf* elf_ = nullptr;
  std::string path_, build_id_;
  CodeRanges code_;
  bool has_debug_info_ = false, has_symtab_ = false, has_mini_debug_info_ = false;
  std::optional<uint64_t> text_, first_load_;
  std::optional<DebugLink> debug_link_;
};

// A section by name ("debug_line" finds .debug_line and .zdebug_line, or with `split` .debug_line.dwo), uncompressed
// once libdw has opened the file. Empty when the file does not have it.
std::string_view debug_section(Elf* elf, std::string_view name, bool split);
// Why the debug sections of `elf`, on which libdw was opened, cannot be read ("compressed with zstd"); or empty.
std::string unreadable_sections(Elf* elf);

}  // namespace traceaf::reader::symbols
