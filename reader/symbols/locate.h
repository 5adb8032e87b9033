// Finds the files of a module on this machine: the ELF file itself, its debug file, the file shared by dwz. Never asks
// the network.
#pragma once

#include <memory>
#include <string>

#include "reader/symbols/elf_file.h"
#include "reader/symbols/symbolizer.h"

namespace traceaf::reader::symbols {

struct Files {
  std::unique_ptr<ElfFile> main;   // nullptr when only a debug file with the right build id was found
  std::unique_ptr<ElfFile> debug;  // nullptr when `main` has the debug information itself, or there is none
  uint64_t debug_shift = 0;        // address in `debug` - address in the module's own file
  SymbolState failure = SymbolState::kNotLoaded;  // kMissing, kMismatch or kUnsupported when nothing can be used
  std::string note;                               // why, or what was found but refused
};

// Without the kernel's " (deleted)".
std::string plain_path(const std::string& recorded);

// A file whose build id differs from the recorded one is never used.
Files locate(const Module& module, const SymbolOptions& options);

// The file that .gnu_debugaltlink of `from` names, by path and by build id (lower-case hex); nullptr when not found.
std::unique_ptr<ElfFile> locate_alternate(const ElfFile& from, const std::string& name, const std::string& build_id,
                                          const SymbolOptions& options);

}  // namespace traceaf::reader::symbols
