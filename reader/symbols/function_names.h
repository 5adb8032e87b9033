// Names of functions from their DIEs: demangled linkage names, else names qualified by what the DIE is nested in.
#pragma once

#include <elfutils/libdw.h>

#include <memory>
#include <string>
#include <unordered_map>

#include "reader/symbols/unit_index.h"

namespace traceaf::reader::symbols {

struct FunctionName {
  std::string text;    // empty when the function has no name
  bool exact = false;  // from a linkage name, or of a language without overloads and namespaces
};

class FunctionNames {
 public:
  explicit FunctionNames(const CodeRanges& code) : code_(code) {}
  // The index of the unit whose functions are asked next; it must live until the next call.
  void enter(Dwarf_CU* cu, const UnitIndex* index);
  // Name of a subprogram or inlined subroutine. The reference is valid as long as this object.
  const FunctionName& name(const Dwarf_Die& die);
  // demangle(), each name once.
  const std::string& demangled(const std::string& raw);

 private:
  FunctionName make(Dwarf_Die die, int hops);
  std::string qualified(Dwarf_Die die, const char* name, int hops);
  const UnitIndex* index_of(Dwarf_CU* cu);

  const CodeRanges& code_;
  Dwarf_CU* cu_ = nullptr;
  const UnitIndex* index_ = nullptr;
  std::unordered_map<const void*, FunctionName> names_;  // by address of the DIE that has the name
  std::unordered_map<std::string, std::string> demangled_;
  std::unordered_map<Dwarf_CU*, std::unique_ptr<UnitIndex>> others_;  // units referred to from others (LTO, dwz)
};

}  // namespace traceaf::reader::symbols
