// Resolving one module: unit by unit from DWARF, the rest from symbol tables.
#include "reader/symbols/module_symbols.h"

#include <dwarf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "reader/symbols/demangle.h"
#include "reader/symbols/dwarf_file.h"
#include "reader/symbols/function_names.h"
#include "reader/symbols/line_program.h"
#include "reader/symbols/locate.h"
#include "reader/symbols/symbol_table.h"
#include "reader/symbols/unit_index.h"

namespace traceaf::reader::symbols {
namespace {

constexpr const char* kInstall =
    "install its -dbgsym (or -dbg) package, or build it with -g and do not strip it, for inlined functions and lines";

uint32_t number_of(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr(&die, name, &attribute) == nullptr || dwarf_formudata(&attribute, &value) != 0) return 0;
  return static_cast<uint32_t>(value);
}

std::string text_of(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  const char* text = dwarf_attr(&die, name, &attribute) != nullptr ? dwarf_formstring(&attribute) : nullptr;
  return text != nullptr ? text : "";
}

class Resolver {
 public:
  Resolver(const Module& module, const std::vector<uint64_t>& addresses, const SymbolOptions& options)
      : addresses_(addresses), options_(options), files_(locate(module, options)) {
    result_.frames.resize(addresses.size());
  }
  ModuleResult run();

 private:
  void read_symbols();
  void resolve_all();
  void resolve_units(const ElfFile& file, FunctionNames& names);
  void resolve_unit(DwarfFile& dwarf, FunctionNames& names, uint32_t unit, const size_t* first, const size_t* last);
  void name_from_symbols(FunctionNames& names);
  std::string symbol(FunctionNames& names, uint64_t address, bool mangled_only);
  void judge();

  // One byte before the return address is inside the call.
  [[nodiscard]] uint64_t call(size_t i) const { return addresses_[i] - 1; }
  [[nodiscard]] uint64_t debug_call(size_t i) const { return call(i) + files_.debug_shift; }

  const std::vector<uint64_t>& addresses_;
  const SymbolOptions& options_;
  Files files_;
  SymbolTable symbols_;
  ModuleResult result_;
  std::string problem_;
  std::string missing_split_;  // name of a .dwo file that was not found
  size_t missing_split_units_ = 0;
  bool debug_info_read_ = false;
  bool unsupported_ = false;
};

void Resolver::read_symbols() {
  if (files_.debug != nullptr) symbols_.add(*files_.debug, files_.debug_shift);
  if (files_.main != nullptr) {
    symbols_.add(*files_.main, 0);
    const bool full = files_.main->has_symtab() || (files_.debug != nullptr && files_.debug->has_symtab());
    if (!full && files_.main->has_mini_debug_info()) symbols_.add_mini_debug_info(*files_.main);
  }
  symbols_.finish();
}

void Resolver::resolve_all() {
  const ElfFile* file = files_.debug != nullptr ? files_.debug.get() : files_.main.get();
  if (file == nullptr) return;
  result_.debug_file = file->path();
  FunctionNames names(file->code());
  if (file->has_debug_info()) resolve_units(*file, names);
  name_from_symbols(names);
}

void Resolver::resolve_units(const ElfFile& file, FunctionNames& names) {
  DwarfFile dwarf(file, options_);
  problem_ = dwarf.problem();
  unsupported_ = !dwarf.ok();
  debug_info_read_ = dwarf.ok();
  if (!dwarf.ok()) return;
  std::vector<uint32_t> units(addresses_.size());
  std::vector<size_t> order;
  for (size_t i = 0; i < addresses_.size(); ++i) {
    units[i] = dwarf.find_unit(debug_call(i));
    if (units[i] != IntervalMap::kNone) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return units[a] < units[b]; });
  for (size_t at = 0; at < order.size();) {
    size_t end = at;
    while (end < order.size() && units[order[end]] == units[order[at]]) ++end;
    resolve_unit(dwarf, names, units[order[at]], order.data() + at, order.data() + end);
    at = end;
  }
}

void Resolver::resolve_unit(DwarfFile& dwarf, FunctionNames& names, uint32_t unit, const size_t* first,
                            const size_t* last) {
  Dwarf_Die skeleton, code;
  bool split_missing = false;
  if (!dwarf.unit(unit, skeleton, code, split_missing)) return;
  if (split_missing) {
    ++missing_split_units_;
    if (missing_split_.empty()) missing_split_ = text_of(skeleton, DW_AT_dwo_name);
    if (missing_split_.empty()) missing_split_ = text_of(skeleton, DW_AT_GNU_dwo_name);
  }
  const CodeRanges& ranges = dwarf.file().code();
  std::vector<LineHit> lines(static_cast<size_t>(last - first));
  std::optional<LineProgram> program, split_program;
  Dwarf_Attribute attribute;
  Dwarf_Word offset = 0;
  if (options_.lines && dwarf_attr(&skeleton, DW_AT_stmt_list, &attribute) != nullptr &&
      dwarf_formudata(&attribute, &offset) == 0) {
    program.emplace(dwarf.file().elf(), offset, text_of(skeleton, DW_AT_comp_dir), false);
    std::vector<uint64_t> calls;
    calls.reserve(lines.size());
    for (const size_t* i = first; i != last; ++i) calls.push_back(debug_call(*i));
    if (program->ok()) lines = program->find(calls, ranges);
  }
  LineProgram* call_files = program ? &*program : nullptr;
  if (options_.lines && code.cu != skeleton.cu) {
    // The numbers of files in a .dwo refer to its own table, where it has one.
    split_program.emplace(dwarf_getelf(dwarf_cu_getdwarf(code.cu)), 0, text_of(skeleton, DW_AT_comp_dir), true);
    if (split_program->ok()) call_files = &*split_program;
  }
  UnitIndex index(code, ranges, false);
  names.enter(code.cu, &index);
  for (const size_t* i = first; i != last; ++i) {
    std::vector<SourceFrame>& frames = result_.frames[*i];
    SourceFrame frame;
    const LineHit& hit = lines[static_cast<size_t>(i - first)];
    if (hit.found) {
      frame.file = program->file(hit.file);
      frame.line = hit.line;
      frame.column = hit.column;
    }
    uint32_t at = split_missing ? UnitIndex::kNone : index.find(debug_call(*i));
    // Only the line of the same function tells more than none.
    if (hit.borrowed_from != 0 && index.find(hit.borrowed_from) != at) frame.line = frame.column = 0;
    if (at == UnitIndex::kNone) {
      // The function comes from the symbol table; the line is known all the same.
      if (hit.found) frames.push_back(std::move(frame));
      continue;
    }
    while (at != UnitIndex::kNone) {
      const UnitIndex::Scope& scope = index.scope(at);
      const FunctionName& name = names.name(scope.die);
      frame.inlined = scope.parent != UnitIndex::kNone;
      frame.function = name.text;
      if (!frame.inlined && !name.exact) {
        // Reduced debug information has no linkage names; the symbol has.
        std::string better = symbol(names, call(*i), !name.text.empty());
        if (!better.empty()) frame.function = std::move(better);
      }
      frames.push_back(std::move(frame));
      frame = SourceFrame();
      if (scope.parent != UnitIndex::kNone && options_.lines) {
        Dwarf_Die die = scope.die;
        frame.line = number_of(die, DW_AT_call_line);
        frame.column = number_of(die, DW_AT_call_column);
        if (call_files != nullptr) frame.file = call_files->file(number_of(die, DW_AT_call_file));
      }
      at = scope.parent;
    }
  }
  names.enter(nullptr, nullptr);
}

std::string Resolver::symbol(FunctionNames& names, uint64_t address, bool mangled_only) {
  const std::string_view raw = plain_symbol(symbols_.find(address));
  if (mangled_only && !is_mangled(raw)) return {};
  return raw.empty() ? std::string() : names.demangled(std::string(raw));
}

void Resolver::name_from_symbols(FunctionNames& names) {
  for (size_t i = 0; i < addresses_.size(); ++i) {
    std::vector<SourceFrame>& frames = result_.frames[i];
    if (!frames.empty() && !frames.back().function.empty()) continue;
    std::string name = symbol(names, call(i), false);
    if (frames.empty()) {
      if (name.empty()) continue;
      frames.emplace_back();
    }
    frames.back().function = std::move(name);
  }
}

void Resolver::judge() {
  if (files_.main == nullptr && files_.debug == nullptr) {
    result_.state = files_.failure;
    result_.note = files_.note;
    return;
  }
  const std::string& note = files_.note.empty() ? problem_ : files_.note;
  result_.note = note;
  if (unsupported_) {
    result_.state = SymbolState::kUnsupported;
    result_.note = problem_;
  } else if (missing_split_units_ != 0) {
    const std::string package = result_.debug_file + ".dwp";
    if (access(package.c_str(), F_OK) == 0) {
      result_.state = SymbolState::kUnsupported;
      result_.note = fmt::format(
          "its debug information is in {}, a form that cannot be read; keep the .dwo files or build without "
          "-gsplit-dwarf",
          package);
    } else {
      result_.state = SymbolState::kSymbolTable;
      result_.note = fmt::format(
          "{} split debug file(s) were not found, such as {}; keep the .dwo files where they "
          "were built",
          missing_split_units_, missing_split_);
    }
  } else if (debug_info_read_) {
    result_.state = SymbolState::kDebugInfo;
  } else {
    result_.state = symbols_.empty() ? SymbolState::kNone : SymbolState::kSymbolTable;
    const char* what =
        symbols_.empty() ? "it has neither debug information nor a symbol table" : "no debug information";
    result_.note = note.empty() ? fmt::format("{}; {}", what, kInstall) : fmt::format("{}; {}", note, kInstall);
  }
}

ModuleResult Resolver::run() {
  read_symbols();
  resolve_all();
  judge();
  return std::move(result_);
}

}  // namespace

ModuleResult resolve_module(const Module& module, const std::vector<uint64_t>& addresses,
                            const SymbolOptions& options) {
  return Resolver(module, addresses, options).run();
}

}  // namespace traceaf::reader::symbols
