// Function names in short form and the plumbing rule (see function_name.h).
#include "reader/views/function_name.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace traceaf::reader::views {
namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)";
constexpr std::string_view kOperator = "operator";

bool starts(std::string_view text, size_t at, std::string_view what) { return text.substr(at, what.size()) == what; }

// Index behind the group that opens at `at`, or npos. In <> also () are balanced, and "->" closes nothing.
size_t skip_group(std::string_view text, size_t at) {
  const char open = text[at];
  const char close = open == '<' ? '>' : ')';
  size_t depth = 0;
  for (size_t i = at; i < text.size(); ++i) {
    const char c = text[i];
    if (c == open) {
      ++depth;
    } else if (c == close && !(c == '>' && text[i - 1] == '-')) {
      if (--depth == 0) return i + 1;
    } else if (open == '<' && c == '(') {
      i = skip_group(text, i);
      if (i == std::string_view::npos) return i;
      --i;
    }
  }
  return std::string_view::npos;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Length of the operator's own characters at `at` ("()", "<<", "->*", ...), 0 for "operator new" and conversions.
size_t symbol_length(std::string_view name, size_t at) {
  if (starts(name, at, "()") || starts(name, at, "[]")) return 2;
  size_t n = 0;
  while (at + n < name.size() && std::string_view("<>=!+-*/%^&|~,").find(name[at + n]) != std::string_view::npos) ++n;
  return n;
}

}  // namespace

std::string short_function(std::string_view name) {
  std::string out;
  bool in_operator = false;
  size_t i = 0;
  while (i < name.size()) {
    const char c = name[i];
    if (starts(name, i, kOperator) && (i == 0 || !is_word(name[i - 1])) &&
        (i + kOperator.size() == name.size() || !is_word(name[i + kOperator.size()]))) {
      const size_t symbol = symbol_length(name, i + kOperator.size());
      out.append(name.substr(i, kOperator.size() + symbol));
      i += kOperator.size() + symbol;
      in_operator = symbol == 0;
      if (starts(name, i, " <")) {  // its template arguments, set off from its own characters
        out += ' ';
        ++i;
      }
    } else if (starts(name, i, kAnonymous)) {
      out.append(kAnonymous);
      i += kAnonymous.size();
    } else if (c == '(') {
      i = skip_group(name, i);
      if (i == std::string_view::npos) return std::string(name);
      in_operator = false;
    } else if (c == '<' && !out.empty()) {
      i = skip_group(name, i);
      if (i == std::string_view::npos) return std::string(name);
      out += "<>";
    } else if (c == '<') {  // Rust: "<T as Trait>::method"
      const size_t end = skip_group(name, i);
      if (end == std::string_view::npos) return std::string(name);
      out.append(name.substr(i, end - i));
      i = end;
    } else if (c == ' ' && !in_operator) {
      const std::string_view rest = name.substr(i + 1);
      const bool qualifier = rest.substr(0, 5) == "const" && (rest.size() == 5 || !is_word(rest[5]));
      if (qualifier || rest.empty() || rest[0] == '[' || rest[0] == '&' || rest.substr(0, 8) == "volatile") break;
      if (rest[0] != '(' || starts(rest, 0, kAnonymous)) out.clear();  // what came before was the return type
      ++i;
    } else {
      out += c;
      ++i;
    }
  }
  return out.empty() ? std::string(name) : out;
}

bool is_plumbing(std::string_view function, std::string_view file, std::string_view module) {
  static constexpr std::string_view kAllocators[] = {"libtraceaf.so", "libjemalloc.so", "libtcmalloc",
                                                     "libmimalloc.so"};
  const std::string_view object = module.substr(module.rfind('/') + 1);
  for (const std::string_view prefix : kAllocators) {
    if (starts(object, 0, prefix)) return true;
  }
  static constexpr std::string_view kFunctions[] = {
#define TRACEAF_PLUMBING(name) name,
#include "reader/views/plumbing.inc"
#undef TRACEAF_PLUMBING
  };
  const std::string name = short_function(function);
  if (std::find(std::begin(kFunctions), std::end(kFunctions), name) != std::end(kFunctions)) return true;
  static constexpr std::string_view kPrefixes[] = {"std::", "__gnu_cxx::", "__rust_", "__rdl_", "__rg_"};
  for (const std::string_view prefix : kPrefixes) {
    if (starts(name, 0, prefix)) return true;
  }
  return starts(file, 0, "/rustc/") || file.find("/include/c++/") != std::string_view::npos;
}

}  // namespace traceaf::reader::views
