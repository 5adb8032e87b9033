// traceaf-report leaks.
#include "reader/cli/session.h"

namespace traceaf::reader::cli {
namespace {

constexpr size_t kLimit = 10;

void declare(CLI::App& app, Options& options) {
  declare_file(app, options);
  declare_output(app, options);
  declare_limit(app, options, kLimit);
  declare_full(app, options);
  declare_symbols(app, options);
}

int run(Options& options) { return run_view(options, kLimit, true, views::leaks_view); }

}  // namespace

const Verb k_leaks{"leaks", "what is not freed at the end, by call stack", declare, run};

}  // namespace traceaf::reader::cli
