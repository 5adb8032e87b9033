// Following abstract origins and specifications to the DIE that names a function.
#include "reader/symbols/function_names.h"

#include <dwarf.h>

#include "reader/symbols/demangle.h"

namespace traceaf::reader::symbols {
namespace {

constexpr int kMostHops = 24;  // references and levels of nesting; a cycle in a corrupt file ends here

const char* text_of(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  return dwarf_attr(&die, name, &attribute) != nullptr ? dwarf_formstring(&attribute) : nullptr;
}

// The DIE that `die` completes or is an instance of.
bool origin_of(Dwarf_Die& die, Dwarf_Die& origin) {
  Dwarf_Attribute attribute;
  for (const unsigned name : {DW_AT_abstract_origin, DW_AT_specification}) {
    if (dwarf_attr(&die, name, &attribute) == nullptr) continue;
    // A reference to the start of a unit is what a linker leaves of one it dropped.
    return dwarf_formref_die(&attribute, &origin) != nullptr && dwarf_cuoffset(&origin) != 0;
  }
  return false;
}

bool has_plain_names(Dwarf_CU* cu) {
  Dwarf_Die unit;
  if (dwarf_cu_info(cu, nullptr, nullptr, &unit, nullptr, nullptr, nullptr, nullptr) != 0) return false;
  switch (dwarf_srclang(&unit)) {
    case DW_LANG_C:
    case DW_LANG_C89:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case DW_LANG_Mips_Assembler:
      return true;
    default:
      return false;
  }
}

}  // namespace

void FunctionNames::enter(Dwarf_CU* cu, const UnitIndex* index) {
  cu_ = cu;
  index_ = index;
}

const std::string& FunctionNames::demangled(const std::string& raw) {
  auto [it, fresh] = demangled_.try_emplace(raw);
  if (fresh) it->second = demangle(raw);
  return it->second;
}

const FunctionName& FunctionNames::name(const Dwarf_Die& die) {
  // All instances of a function share the name of the abstract one.
  Dwarf_Die named = die, origin;
  if (text_of(named, DW_AT_linkage_name) == nullptr && origin_of(named, origin)) named = origin;
  auto it = names_.find(named.addr);
  if (it == names_.end()) it = names_.emplace(named.addr, make(named, 0)).first;
  return it->second;
}

FunctionName FunctionNames::make(Dwarf_Die die, int hops) {
  const char* plain = nullptr;
  for (;; ++hops) {
    // In C a linkage name that differs is an alias for internal use ("__GI_abort").
    const bool is_plain = has_plain_names(die.cu) && text_of(die, DW_AT_name) != nullptr;
    for (const unsigned attribute : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
      if (is_plain) break;
      const char* linkage = text_of(die, attribute);
      if (linkage != nullptr && *linkage != '\0') return {demangled(linkage), true};
    }
    if (plain == nullptr) plain = text_of(die, DW_AT_name);
    Dwarf_Die origin;
    if (hops >= kMostHops || !origin_of(die, origin)) break;
    die = origin;
  }
  if (plain == nullptr || *plain == '\0') return {};
  if (has_plain_names(die.cu)) return {plain, true};
  return {qualified(die, plain, hops), false};
}

std::string FunctionNames::qualified(Dwarf_Die die, const char* name, int hops) {
  std::string text = name;
  for (; hops < kMostHops; ++hops) {
    // A type may be declared elsewhere than where it is completed; the declaration is in its namespace.
    Dwarf_Die origin;
    while (hops < kMostHops && origin_of(die, origin)) {
      die = origin;
      ++hops;
    }
    const UnitIndex* index = index_of(die.cu);
    Dwarf_Die parent;
    if (index == nullptr || !index->parent_of(die, parent)) break;
    const int tag = dwarf_tag(&parent);
    if (tag == DW_TAG_subprogram || tag == DW_TAG_entry_point) {
      std::string outer = make(parent, hops + 1).text;  // has its own qualification
      return outer.empty() ? text : outer.append("::").append(text);
    }
    const char* part = dwarf_diename(&parent);
    if (part == nullptr || *part == '\0') {
      part = tag == DW_TAG_namespace ? "(anonymous namespace)" : "(anonymous)";
    }
    text.insert(0, "::").insert(0, part);
    die = parent;
  }
  return text;
}

const UnitIndex* FunctionNames::index_of(Dwarf_CU* cu) {
  if (cu == cu_) return index_;
  auto it = others_.find(cu);
  if (it == others_.end()) {
    Dwarf_Die unit;
    std::unique_ptr<UnitIndex> index;
    if (dwarf_cu_info(cu, nullptr, nullptr, &unit, nullptr, nullptr, nullptr, nullptr) == 0) {
      index = std::make_unique<UnitIndex>(unit, code_, true);
    }
    it = others_.emplace(cu, std::move(index)).first;
  }
  return it->second.get();
}

}  // namespace traceaf::reader::symbols
