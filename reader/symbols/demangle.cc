// Demangling by libiberty, with limits: names come from files that may be corrupt.
#include "reader/symbols/demangle.h"

#include <csetjmp>
#include <cstdlib>
#define HAVE_DECL_BASENAME 1  // else libiberty.h declares one that clashes with <cstring>
#include <libiberty/demangle.h>

namespace traceaf::reader::symbols {
namespace {

constexpr size_t kLongestMangled = 32 << 10;
constexpr size_t kLongestPlain = 64 << 10;  // substitutions can double the text at each level

struct Output {
  std::string text;
  jmp_buf stop;
};

// The demanglers allocate nothing while they print through a callback, so that they can be left from within it.
void collect(const char* part, size_t bytes, void* to) {
  auto* out = static_cast<Output*>(to);
  if (out->text.size() + bytes > kLongestPlain) longjmp(out->stop, 1);
  out->text.append(part, bytes);
}

using Demangler = int (*)(const char*, int, demangle_callbackref, void*);

bool run(Demangler demangler, const char* name, int options, Output& out) {
  out.text.clear();
  if (setjmp(out.stop) != 0) return false;
  return demangler(name, options, collect, &out) != 0 && !out.text.empty();
}

bool all_digits(std::string_view s) {
  return !s.empty() && s.find_first_not_of("0123456789") == std::string_view::npos;
}

// "_ZN...17h0123456789abcdefE": the legacy Rust mangling looks like C++ but for the hash.
bool is_rust_legacy(std::string_view name) {
  const size_t hash = name.rfind("17h");
  if (!name.starts_with("_ZN") || hash == std::string_view::npos || hash + 20 > name.size()) return false;
  return name.substr(hash + 3, 16).find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         name[hash + 19] == 'E';
}

}  // namespace

bool is_mangled(std::string_view name) {
  return name.starts_with("_Z") || name.starts_with("_R") || name.starts_with("___Z") || name.starts_with("_D");
}

std::string demangle(const std::string& name) {
  if (name.size() > kLongestMangled || !is_mangled(name)) return name;
  Output out;
  if (name.starts_with("_R") || is_rust_legacy(name)) {
    if (run(rust_demangle_callback, name.c_str(), 0, out)) return std::move(out.text);
  }
  if (name.starts_with("_Z") || name.starts_with("___Z")) {
    const int options = DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP;
    if (run(cplus_demangle_v3_callback, name.c_str(), options, out)) return std::move(out.text);
    return name;
  }
  if (name.starts_with("_D")) {
    if (char* text = dlang_demangle(name.c_str(), 0)) {
      std::string plain = text;
      free(text);
      if (!plain.empty() && plain.size() <= kLongestPlain) return plain;
    }
  }
  return name;
}

std::string_view plain_symbol(std::string_view name) {
  if (const size_t at = name.find('@'); at != std::string_view::npos && at > 0) name = name.substr(0, at);
  for (;;) {
    const size_t dot = name.rfind('.');
    if (dot == std::string_view::npos || dot == 0) return name;
    const std::string_view last = name.substr(dot + 1);
    if (last == "cold" || last == "part" || last == "isra" || last == "constprop" || last == "lto_priv" ||
        last == "llvm" || last == "localalias" || last == "__uniq" || last == "warm") {
      name = name.substr(0, dot);
    } else if (all_digits(last)) {
      // Only behind one of the words above: "f.1" may be a function of its own (a static local of Fortran or D).
      const std::string_view before = name.substr(0, dot);
      const size_t word = before.rfind('.');
      if (word == std::string_view::npos || word == 0) return name;
      const std::string_view mark = before.substr(word + 1);
      if (mark != "part" && mark != "isra" && mark != "constprop" && mark != "lto_priv" && mark != "llvm" &&
          mark != "__uniq" && mark != "cold") {
        return name;
      }
      name = before;
    } else {
      return name;
    }
  }
}

}  // namespace traceaf::reader::symbols
