// The functions of one compilation unit by address, inlined ones included, from a single walk over its DIEs.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <vector>

#include "reader/symbols/elf_file.h"
#include "reader/symbols/interval_map.h"

namespace traceaf::reader::symbols {

class UnitIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Scope {
    Dwarf_Die die;
    uint32_t parent = kNone;  // the scope that this one was inlined into; kNone for a function of its own
  };

  // Walks the unit. Addresses outside `code` belong to discarded functions and are left out. With `names_only` only
  // parent_of() works.
  UnitIndex(Dwarf_Die unit, const CodeRanges& code, bool names_only);
  // Innermost scope at `address`, or kNone.
  [[nodiscard]] uint32_t find(uint64_t address) const { return map_.find(address); }
  [[nodiscard]] const Scope& scope(uint32_t index) const { return scopes_[index]; }
  // The namespace, type or function that holds the function, namespace or type `die` of this unit. False at the top.
  bool parent_of(const Dwarf_Die& die, Dwarf_Die& parent) const;
  // Code of all functions, for a unit that does not list its own ranges.
  [[nodiscard]] const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  struct Named {
    const void* address;  // of the DIE
    uint32_t parent;
  };
  struct Level {
    uint32_t scope, named;  // innermost around the DIEs of this level
  };
  // True when the children of `die` may hold functions; `level` becomes theirs.
  bool visit(Dwarf_Die& die, Level& level, const CodeRanges& code, bool names_only);
  bool add_ranges(Dwarf_Die& die, uint32_t depth, const CodeRanges& code);

  Dwarf_CU* cu_;
  std::vector<Scope> scopes_;
  std::vector<uint32_t> depths_;  // of scopes_
  std::vector<Named> named_;      // ascending by address
  std::vector<Interval> intervals_;
  IntervalMap map_;
};

// Calls `add(lo, hi)` for each address range of `die`. False when they cannot be read to the end.
template <typename Add>
bool for_ranges(Dwarf_Die& die, Add add) {
  constexpr unsigned kMost = 1 << 20;  // of one DIE: a corrupt offset can point at a whole section
  Dwarf_Addr base = 0, lo = 0, hi = 0;
  ptrdiff_t at = 0;
  for (unsigned n = 0; n < kMost; ++n) {
    at = dwarf_ranges(&die, at, &base, &lo, &hi);
    if (at <= 0) return at == 0;
    if (lo < hi) add(lo, hi);
  }
  return false;
}

}  // namespace traceaf::reader::symbols
