// traceaf-report summary.
#include <CLI/CLI.hpp>

#include "reader/cli/session.h"

namespace traceaf::reader::cli {
namespace {

constexpr size_t kLimit = 0;  // as many sites as fit the screen

void declare(CLI::App& app, Options& options) {
  declare_file(app, options);
  declare_output(app, options);
  app.add_option("--limit", options.limit, "sites in each list [as many as fit the screen, 5 in json]")
      ->option_text("N")
      ->check(CLI::NonNegativeNumber);
  declare_full(app, options);
  declare_symbols(app, options);
}

int run(Options& options) { return run_view(options, kLimit, true, views::summary_view); }

}  // namespace

const Verb k_summary{"summary", "the whole run on one screen", declare, run};

}  // namespace traceaf::reader::cli
