// Opening debug information by libdw and mapping addresses to its units.
#include "reader/symbols/dwarf_file.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/version.h>
#include <fmt/format.h>

#include <utility>

#include "reader/symbols/locate.h"
#include "reader/symbols/unit_index.h"

namespace traceaf::reader::symbols {
namespace {

// Of an inline function that several units compiled the linker keeps the first, and GNU ld lets the debug information
// of the others point at it too, though their code may differ.
constexpr uint32_t kFirstWins = UINT32_MAX;

}  // namespace

DwarfFile::DwarfFile(const ElfFile& file, const SymbolOptions& options) : file_(file) {
  dwarf_.reset(dwarf_begin_elf(file.elf(), DWARF_C_READ, nullptr));
  if (std::string why = unreadable_sections(file.elf()); !why.empty()) {
    problem_ =
        fmt::format("{}, which elfutils {}.{} cannot read", why, _ELFUTILS_VERSION / 1000, _ELFUTILS_VERSION % 1000);
    if (why.find("zstd") != std::string::npos) {
      problem_ += "; convert them with `objcopy --compress-debug-sections=zlib` or build with -gz=zlib";
    }
    // Half of the sections would give wrong names.
    dwarf_.reset();
    return;
  }
  if (dwarf_ == nullptr) {
    problem_ = fmt::format("the debug information of {} is damaged ({})", file.path(), dwarf_errmsg(-1));
    return;
  }
  set_alternate(options);
  read_units();
  if (units_.empty() && problem_.empty()) {
    problem_ = fmt::format("the debug information of {} holds no compilation unit that can be read", file.path());
  }
}

DwarfFile::~DwarfFile() = default;

void DwarfFile::set_alternate(const SymbolOptions& options) {
  const char* name = nullptr;
  const void* id = nullptr;
  const ssize_t id_bytes = dwelf_dwarf_gnu_debugaltlink(dwarf_.get(), &name, &id);
  if (id_bytes <= 0 || name == nullptr) return;
  std::string hex;
  for (ssize_t i = 0; i < id_bytes && i < 64; ++i) {
    hex += fmt::format("{:02x}", static_cast<const unsigned char*>(id)[i]);
  }
  alternate_file_ = locate_alternate(file_, name, hex, options);
  if (alternate_file_ != nullptr) {
    alternate_.reset(dwarf_begin_elf(alternate_file_->elf(), DWARF_C_READ, nullptr));
  }
  if (alternate_ != nullptr) {
    dwarf_setalt(dwarf_.get(), alternate_.get());
  } else {
    problem_ = fmt::format("some names are missing because the shared debug file {} (made by dwz) was not found", name);
  }
}

void DwarfFile::read_units() {
  Dwarf_CU* cu = nullptr;
  uint8_t type = 0;
  Dwarf_Half version = 0;
  Dwarf_Die die{};
  while (dwarf_get_units(dwarf_.get(), cu, &cu, &version, &type, &die, nullptr) == 0) {
    // "Split" in this file: a skeleton that also has some functions, which libdw takes for the other half.
    if (type != DW_UT_compile && type != DW_UT_skeleton && type != DW_UT_split_compile) continue;
    if (dwarf_tag(&die) != DW_TAG_compile_unit && dwarf_tag(&die) != DW_TAG_skeleton_unit) continue;
    const auto index = static_cast<uint32_t>(units_.size());
    units_.push_back(dwarf_dieoffset(&die));
    const size_t before = intervals_.size();
    const bool whole = for_ranges(die, [&](uint64_t lo, uint64_t hi) {
      if (file_.code().holds(lo)) intervals_.push_back({lo, hi, kFirstWins - index, index});
    });
    const bool lists_code = dwarf_hasattr(&die, DW_AT_ranges) != 0 || dwarf_hasattr(&die, DW_AT_high_pc) != 0;
    if (!whole || (intervals_.size() == before && !lists_code)) rangeless_.push_back(index);
  }
  map_ = IntervalMap(intervals_);
}

void DwarfFile::read_rangeless() {
  for (const uint32_t index : std::exchange(rangeless_, {})) {
    Dwarf_Die die, code;
    bool split_missing = false;
    if (!unit(index, die, code, split_missing) || split_missing) continue;
    const UnitIndex functions(code, file_.code(), false);
    for (Interval interval : functions.intervals()) {
      if (interval.depth == 0) intervals_.push_back({interval.lo, interval.hi, kFirstWins - index, index});
    }
  }
  map_ = IntervalMap(intervals_);
}

uint32_t DwarfFile::find_unit(uint64_t address) {
  uint32_t index = map_.find(address);
  if (index == IntervalMap::kNone && !rangeless_.empty()) {
    read_rangeless();
    index = map_.find(address);
  }
  return index;
}

bool DwarfFile::unit(uint32_t index, Dwarf_Die& unit, Dwarf_Die& code, bool& split_missing) {
  if (dwarf_offdie(dwarf_.get(), units_[index], &unit) == nullptr) return false;
  code = unit;
  split_missing = false;
  uint8_t type = 0;
  if (dwarf_cu_info(unit.cu, nullptr, &type, nullptr, nullptr, nullptr, nullptr, nullptr) != 0) return true;
  if (type != DW_UT_skeleton) return true;
  Dwarf_Die split{};
  // Without a directory libdw 0.188 reads an attribute that it never set.
  split_missing = dwarf_hasattr(&unit, DW_AT_comp_dir) == 0 ||
                  dwarf_cu_info(unit.cu, nullptr, nullptr, nullptr, &split, nullptr, nullptr, nullptr) != 0 ||
                  split.addr == nullptr || split.cu == nullptr;
  if (!split_missing) code = split;
  return true;
}

}  // namespace traceaf::reader::symbols
