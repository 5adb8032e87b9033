// The walk: every DIE that can hold code is entered, every other one is skipped as a whole.
#include "reader/symbols/unit_index.h"

#include <dwarf.h>

#include <algorithm>

namespace traceaf::reader::symbols {
namespace {

constexpr size_t kDeepest = 512;                    // nesting of DIEs; compilers stay far below
constexpr size_t kMostIntervals = size_t{1} << 23;  // of one unit

const unsigned char* end_of_unit(Dwarf_Die& unit) {
  Dwarf* dwarf = dwarf_cu_getdwarf(unit.cu);
  Dwarf_Half version = 0;
  uint8_t type = 0;
  if (dwarf_cu_info(unit.cu, &version, &type, nullptr, nullptr, nullptr, nullptr, nullptr) != 0) return nullptr;
  const bool in_types = version == 4 && type == DW_UT_type;  // DWARF 4 has them in .debug_types
  const Dwarf_Off die = dwarf_dieoffset(&unit);
  const Dwarf_Off start = die - dwarf_cuoffset(&unit);
  Dwarf_Off next = 0, type_offset = 0;
  uint64_t signature = 0;
  size_t header = 0;
  if (dwarf_next_unit(dwarf, start, &next, &header, nullptr, nullptr, nullptr, nullptr, in_types ? &signature : nullptr,
                      in_types ? &type_offset : nullptr) != 0) {
    return nullptr;
  }
  // The length in the unit's header may be wrong.
  const std::string_view name = in_types ? "debug_types" : "debug_info";
  const std::string_view plain = debug_section(dwarf_getelf(dwarf), name, false);
  const std::string_view split = debug_section(dwarf_getelf(dwarf), name, true);
  const auto* address = static_cast<const char*>(unit.addr);
  for (const std::string_view section : {plain, split}) {
    if (address < section.data() || address >= section.data() + section.size()) continue;
    const char* end = section.data() + section.size();
    if (next > die && next - die < static_cast<size_t>(end - address)) end = address + (next - die);
    return reinterpret_cast<const unsigned char*>(end);
  }
  return nullptr;
}

Dwarf_Die die_at(const void* address, Dwarf_CU* cu) {
  Dwarf_Die die{};
  die.addr = const_cast<void*>(address);
  die.cu = cu;
  return die;
}

}  // namespace

UnitIndex::UnitIndex(Dwarf_Die unit, const CodeRanges& code, bool names_only) : cu_(unit.cu) {
  const unsigned char* end = end_of_unit(unit);
  Dwarf_Die die;
  if (end == nullptr || dwarf_child(&unit, &die) != 0) return;
  std::vector<Level> levels = {{kNone, kNone}};
  for (bool more = true; more;) {
    Level inner = levels.back();
    Dwarf_Die child;
    if (visit(die, inner, code, names_only) && levels.size() < kDeepest && dwarf_child(&die, &child) == 0) {
      levels.push_back(inner);
      die = child;
      continue;
    }
    Dwarf_Die next{};
    const int result = dwarf_siblingof(&die, &next);
    if (result == 0) {
      die = next;
      continue;
    }
    // The level ended. libdw leaves the position of its final null; what follows it belongs to the level above, so that
    // the children just walked need not be walked again to find the parent's sibling.
    if (result < 0 || next.addr == nullptr) break;
    const auto* at = static_cast<const unsigned char*>(next.addr);
    do {
      levels.pop_back();
      ++at;
      more = !levels.empty() && at < end;
    } while (more && *at == 0);
    if (more) die = die_at(at, cu_);
  }
  map_ = IntervalMap(intervals_);
}

bool UnitIndex::visit(Dwarf_Die& die, Level& level, const CodeRanges& code, bool names_only) {
  const int tag = dwarf_tag(&die);
  switch (tag) {
    case DW_TAG_subprogram:
    case DW_TAG_entry_point: {
      named_.push_back({die.addr, level.named});
      level = {kNone, static_cast<uint32_t>(named_.size() - 1)};
      if (names_only) return true;
      const auto index = static_cast<uint32_t>(scopes_.size());
      if (!add_ranges(die, 0, code)) return true;  // a declaration or an abstract instance: may hold local types
      scopes_.push_back({die, kNone});
      depths_.push_back(0);
      level.scope = index;
      return true;
    }
    case DW_TAG_inlined_subroutine: {
      if (names_only || level.scope == kNone) return false;
      const auto index = static_cast<uint32_t>(scopes_.size());
      const uint32_t depth = depths_[level.scope] + 1;
      if (!add_ranges(die, depth, code)) return false;
      scopes_.push_back({die, level.scope});
      depths_.push_back(depth);
      level.scope = index;
      return true;
    }
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_with_stmt:
      return true;
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
    case DW_TAG_enumeration_type:
      named_.push_back({die.addr, level.named});
      level.named = static_cast<uint32_t>(named_.size() - 1);
      return true;
    default:
      return false;
  }
}

bool UnitIndex::add_ranges(Dwarf_Die& die, uint32_t depth, const CodeRanges& code) {
  const auto value = static_cast<uint32_t>(scopes_.size());
  const size_t before = intervals_.size();
  for_ranges(die, [&](uint64_t lo, uint64_t hi) {
    if (intervals_.size() < kMostIntervals && code.holds(lo)) intervals_.push_back({lo, hi, depth, value});
  });
  return intervals_.size() != before;
}

bool UnitIndex::parent_of(const Dwarf_Die& die, Dwarf_Die& parent) const {
  auto it = std::lower_bound(named_.begin(), named_.end(), die.addr,
                             [](const Named& n, const void* address) { return n.address < address; });
  if (it == named_.end() || it->address != die.addr || it->parent == kNone) return false;
  parent = die_at(named_[it->parent].address, cu_);
  return true;
}

}  // namespace traceaf::reader::symbols
