// Names for the addresses of one module, from whatever its files offer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reader/symbols/symbolizer.h"

namespace traceaf::reader::symbols {

struct ModuleResult {
  SymbolState state = SymbolState::kNotLoaded;
  std::string debug_file, note;
  // frames[i] belongs to addresses[i]; empty when there is no name.
  std::vector<std::vector<SourceFrame>> frames;
};

// `addresses`: return addresses as addresses in the module's file, ascending. Safe to call for several modules at once.
ModuleResult resolve_module(const Module& module, const std::vector<uint64_t>& addresses, const SymbolOptions& options);

}  // namespace traceaf::reader::symbols
