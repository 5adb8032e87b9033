// What a verb of traceaf-report is, and the options that verbs share.
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace traceaf::reader::cli {

enum Exit : int { kOk = 0, kInputError = 1, kUsage = 2 };

struct Options {
  std::string file;  // empty: the newest *.traf here
  std::string format = "text";
  std::string colour = "auto";
  std::string metric;
  std::optional<size_t> limit;  // default: the verb's in text, all in JSON
  double threshold = 1;
  bool invert = false;
  bool full = false;
  bool no_symbols = false;
  bool assemble = false;
  std::vector<std::string> debug_dirs;
  std::string sysroot;
  std::string output;

  [[nodiscard]] bool json() const { return format == "json"; }
};

struct Verb {
  std::string_view name;
  std::string_view help;
  void (*declare)(CLI::App& app, Options& options);
  int (*run)(Options& options);
};

#define TRACEAF_VERB(name) extern const Verb k_##name;
#include "reader/cli/verbs.inc"
#undef TRACEAF_VERB

// Groups of options that verbs pick from.
void declare_file(CLI::App& app, Options& options);
void declare_output(CLI::App& app, Options& options);   // --format, --color
void declare_symbols(CLI::App& app, Options& options);  // --no-symbols, --debug-dir, --sysroot
void declare_limit(CLI::App& app, Options& options, size_t in_text);
void declare_full(CLI::App& app, Options& options);
// The options of symbols and stacks, accepted and without effect, so that a script may give them to every verb.
void declare_ignored(CLI::App& app, Options& options);
// `names`: the metrics that the verb knows, its default first.
void declare_metric(CLI::App& app, Options& options, const std::vector<std::string>& names);

}  // namespace traceaf::reader::cli
