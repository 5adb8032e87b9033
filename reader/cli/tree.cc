// traceaf-report tree.
#include "reader/cli/session.h"

namespace traceaf::reader::cli {
namespace {

void declare(CLI::App& app, Options& options) {
  declare_file(app, options);
  declare_output(app, options);
  declare_metric(app, options, {"peak", "live", "allocated", "count", "temporary"});
  app.add_flag("--invert", options.invert, "from the sites to their callers");
  app.add_option("--threshold", options.threshold, "leave out nodes below this share of all [1]")
      ->option_text("PERCENT")
      ->check(CLI::Range(0.0, 100.0));
  declare_limit(app, options, 0);
  declare_full(app, options);
  declare_symbols(app, options);
}

int run(Options& options) { return run_view(options, 0, true, views::tree_view); }

}  // namespace

const Verb k_tree{"tree", "the calling-context tree of a metric", declare, run};

}  // namespace traceaf::reader::cli
