// traceaf-report top.
#include "reader/cli/session.h"

namespace traceaf::reader::cli {
namespace {

constexpr size_t kLimit = 10;

void declare(CLI::App& app, Options& options) {
  declare_file(app, options);
  declare_output(app, options);
  declare_metric(app, options, {"peak", "live", "allocated", "count", "temporary"});
  declare_limit(app, options, kLimit);
  declare_full(app, options);
  declare_symbols(app, options);
}

int run(Options& options) { return run_view(options, kLimit, true, views::top_view); }

}  // namespace

const Verb k_top{"top", "the call stacks that hold most of a metric", declare, run};

}  // namespace traceaf::reader::cli
