// The options that verbs share (see verb.h).
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "reader/cli/verb.h"

namespace traceaf::reader::cli {

void declare_file(CLI::App& app, Options& options) {
  app.add_option("FILE", options.file, "trace to read; without it the newest *.traf in the working directory")
      ->option_text(" ");
}

void declare_output(CLI::App& app, Options& options) {
  app.add_option("--format", options.format, "text for people or json for programs [text]")
      ->option_text("text|json")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("--color", options.colour, "auto: on a terminal, unless NO_COLOR is set or TERM is dumb [auto]")
      ->option_text("auto|always|never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
}

void declare_symbols(CLI::App& app, Options& options) {
  app.add_flag("--no-symbols", options.no_symbols, "show module+offset instead of functions");
  app.add_option("--debug-dir", options.debug_dirs,
                 "folder of separate debug files, searched before /usr/lib/debug; may be given again")
      ->option_text("DIR")
      ->expected(1);
  app.add_option("--sysroot", options.sysroot, "folder that holds the recorded machine's files")->option_text("DIR");
}

void declare_limit(CLI::App& app, Options& options, size_t in_text) {
  app.add_option("--limit", options.limit,
                 fmt::format("most rows shown, 0 shows all [{} in text, all in json]", in_text))
      ->option_text("N")
      ->check(CLI::NonNegativeNumber);
}

void declare_full(CLI::App& app, Options& options) {
  app.add_flag("--full", options.full, "whole stacks with allocator frames, full function names and paths");
}

void declare_ignored(CLI::App& app, Options& options) {
  CLI::App* const hidden = app.add_option_group("");
  hidden->group("");
  declare_symbols(*hidden, options);
  declare_full(*hidden, options);
}

void declare_metric(CLI::App& app, Options& options, const std::vector<std::string>& names) {
  options.metric = names.front();
  app.add_option("--metric", options.metric, fmt::format("what to rank by [{}]", names.front()))
      ->option_text(fmt::format("{}", fmt::join(names, "|")))
      ->check(CLI::IsMember(names));
}

}  // namespace traceaf::reader::cli
