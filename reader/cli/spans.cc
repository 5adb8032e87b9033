// traceaf-report spans.
#include "reader/cli/session.h"

namespace traceaf::reader::cli {
namespace {

constexpr size_t kLimit = 20;

void declare(CLI::App& app, Options& options) {
  declare_file(app, options);
  declare_output(app, options);
  declare_ignored(app, options);
  declare_limit(app, options, kLimit);
}

int run(Options& options) {
  return run_view(options, kLimit, false,
                  [](const Profile& profile, const views::Names&, const views::ViewOptions& view) {
                    return views::spans_view(profile, view);
                  });
}

}  // namespace

const Verb k_spans{"spans", "the address ranges that hold the heap", declare, run};

}  // namespace traceaf::reader::cli
