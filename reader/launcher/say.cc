// What the launcher says (see say.h).
#include "reader/launcher/say.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "reader/views/escape.h"

namespace traceaf::launcher {

void say(std::string_view message) {
  static const auto log = [] {
    auto logger = spdlog::stderr_logger_st("traceaf");
    logger->set_pattern("%n: %v");
    return logger;
  }();
  log->info("{}", reader::views::terminal_safe(message));
}

}  // namespace traceaf::launcher
