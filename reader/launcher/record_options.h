// The command line of `traceaf record`: options of the recorder (from emitter/wire/options.inc) and the command to run.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace traceaf::launcher {

struct OptionRow {
  std::string_view name;
  std::string_view values;  // empty: a word that chooses the state
  std::string_view standard;
  std::string_view help;
};
inline constexpr OptionRow kOptionRows[] = {
#define TRACEAF_OPTION(name, values, standard, help) {#name, values, standard, help},
#include "emitter/wire/options.inc"
#undef TRACEAF_OPTION
};

struct RecordOptions {
  std::vector<std::string> command;
  std::string setting;  // for TRACEALLOCFREE: "1,out=...", without what the environment already says
  std::string out;      // pattern in force, that of the environment and the default included
  bool quiet = false;
};

struct RecordLine {
  RecordOptions options;
  std::optional<int> exit;  // set: stop with this status (help was printed, or an error said)
};

// `words` behind the verb. `inherited`: TRACEALLOCFREE of the environment, empty when unset.
RecordLine parse_record(const std::vector<std::string>& words, const std::string& inherited);

}  // namespace traceaf::launcher
