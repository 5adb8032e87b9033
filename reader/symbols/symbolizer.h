// Names for code addresses: module and offset to functions, files and lines, inline frames included.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reader/profile.h"

namespace traceaf::reader {

// One function at an address. An address has several when calls were inlined, innermost first.
struct SourceFrame {
  std::string function;  // demangled, without return type; see below when unknown
  std::string file;      // empty when unknown
  uint32_t line = 0;     // 0 when unknown
  uint32_t column = 0;
  bool inlined = false;
};

// What is known of a module's symbols, for the coverage table.
enum class SymbolState : uint8_t {
  kNotLoaded,    // no address of it was looked up
  kDebugInfo,    // functions, files and lines
  kSymbolTable,  // function names only
  kNone,         // neither
  kMissing,      // the file was not found
  kMismatch,     // the file found has another build id; it is not used
  kUnsupported   // its debug information has a form that cannot be read (said in `note`)
};

struct ModuleCoverage {
  uint32_t module = 0;  // index into Profile::modules
  SymbolState state = SymbolState::kNotLoaded;
  std::string debug_file;   // where the symbols came from
  std::string note;         // one sentence for the user when state is worse than kDebugInfo
  uint64_t addresses = 0;   // looked up
  uint64_t unresolved = 0;  // of these without a function name
};

struct SymbolOptions {
  std::vector<std::string> debug_dirs = {"/usr/lib/debug"};
  std::string sysroot;  // put before recorded paths first, when set
  bool lines = true;    // false: function names only
};

class Symbolizer {
 public:
  Symbolizer(const std::vector<Module>& modules, SymbolOptions options);
  ~Symbolizer();
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  struct Address {
    uint32_t module = 0;  // index into modules, 0 = none
    uint64_t offset = 0;  // of the return address from the module start (absolute when module is 0)
  };
  // Resolves all addresses at once, grouped by module and compilation unit. result[i] belongs to addresses[i] and is
  // never empty. Addresses are return addresses: the call is looked up one byte before. An unknown function is named
  // "libfoo.so+0x1234", where 0x1234 is the return address in the addresses of the ELF file, as objdump and addr2line
  // take it; "[vdso]+0x..." in the kernel's object; "0x7f..." (absolute) outside of any module.
  std::vector<std::vector<SourceFrame>> resolve(const std::vector<Address>& addresses);
  [[nodiscard]] std::vector<ModuleCoverage> coverage() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace traceaf::reader
