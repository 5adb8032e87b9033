// traceaf-report threads.
#include "reader/cli/session.h"

namespace traceaf::reader::cli {
namespace {

constexpr size_t kLimit = 30;

void declare(CLI::App& app, Options& options) {
  declare_file(app, options);
  declare_output(app, options);
  declare_ignored(app, options);
  declare_metric(app, options, {"allocated", "count", "temporary"});
  declare_limit(app, options, kLimit);
}

int run(Options& options) {
  return run_view(options, kLimit, false,
                  [](const Profile& profile, const views::Names&, const views::ViewOptions& view) {
                    return views::threads_view(profile, view);
                  });
}

}  // namespace

const Verb k_threads{"threads", "what each thread allocated and freed", declare, run};

}  // namespace traceaf::reader::cli
