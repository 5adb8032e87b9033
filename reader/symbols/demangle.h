// Readable function names from linkage names: C++, Rust (both manglings) and D.
#pragma once

#include <string>
#include <string_view>

namespace traceaf::reader::symbols {

// True when `name` has the prefix of a mangling that demangle() knows.
bool is_mangled(std::string_view name);
// The readable form with parameters and template arguments, without return type and Rust hash; `name` itself when it
// is not mangled, malformed, or unreasonably long in either form. Never empty for a name that is not empty.
std::string demangle(const std::string& name);
// `name` of a symbol table without a version ("@@GLIBC_2.34") and without the compiler's mark of a partial copy
// (".cold", ".constprop.0", ".llvm.123" and the like), so that it equals the function's name.
std::string_view plain_symbol(std::string_view name);

}  // namespace traceaf::reader::symbols
