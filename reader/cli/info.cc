// traceaf-report info.
#include <CLI/CLI.hpp>

#include "reader/cli/session.h"

namespace traceaf::reader::cli {
namespace {

constexpr size_t kLimit = 20;

void declare(CLI::App& app, Options& options) {
  declare_file(app, options);
  declare_output(app, options);
  app.add_option("--limit", options.limit, "most generations shown, 0 shows all [20 in text, all in json]")
      ->option_text("N")
      ->check(CLI::NonNegativeNumber);
  declare_full(app, options);
  declare_symbols(app, options);
}

int run(Options& options) { return run_view(options, kLimit, true, views::info_view); }

}  // namespace

const Verb k_info{"info", "process, generations, modules with their symbols, counters", declare, run};

}  // namespace traceaf::reader::cli
