// The compiled fixtures as the symbolizer sees them: a module at a load address, return addresses of its calls, and
// what llvm-symbolizer says about them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reader/symbols/symbolizer.h"

namespace traceaf::reader::fixture {

// Path below the folder of compiled fixtures.
std::string path(const std::string& name);
bool exists(const std::string& name);
// What make_fixtures.sh could not build, for the message of a skipped test.
std::string missing();
// True in CI, where a test may not be skipped for want of a tool of the distribution.
bool must_run();

// As the recorder writes it for a program or library loaded at an address of its own. No build id when `with_id` is
// false.
Module module_of(const std::string& file, bool with_id = true);
// Lower-case hex by readelf.
std::string build_id_of(const std::string& file);

struct Call {
  uint64_t back = 0;     // the return address, in the addresses of the file
  std::string function;  // raw name of the symbol it is in
};
// Every call instruction of `file`, by disassembly. Empty when there is no symbol table.
std::vector<Call> calls_of(const std::string& file);

void expect_same(const std::vector<std::vector<SourceFrame>>& ours,
                 const std::vector<std::vector<SourceFrame>>& expected);

// Resolves the return addresses `back` (addresses of the file) of one module.
struct Resolved {
  std::vector<std::vector<SourceFrame>> frames;
  ModuleCoverage coverage;
};
Resolved resolve(const Module& module, const std::vector<uint64_t>& back, const SymbolOptions& options);
Resolved resolve(const std::string& file, const std::vector<uint64_t>& back);
std::vector<uint64_t> backs_of(const std::vector<Call>& calls);

// For each symbol the symbols of the same code, itself included.
using Aliases = std::map<std::string, std::vector<std::string>>;
Aliases aliases_of(const std::string& file);

struct OracleFrame {
  std::string linkage, file;
  uint32_t line = 0, column = 0;
};
// False when llvm-symbolizer is not installed.
bool has_oracle();
std::vector<std::vector<OracleFrame>> ask_oracle(const std::string& file, const std::vector<uint64_t>& calls);

// Line of the fixture source `name` with the comment "at: MARK".
uint32_t marked_line(const std::string& name, const std::string& mark);

}  // namespace traceaf::reader::fixture
