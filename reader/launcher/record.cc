// traceaf record (see record.h).
#include "reader/launcher/record.h"

#include <fmt/format.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "reader/launcher/child.h"
#include "reader/launcher/library.h"
#include "reader/launcher/outcome.h"
#include "reader/launcher/record_options.h"
#include "reader/launcher/say.h"
#include "reader/launcher/target.h"

namespace traceaf::launcher {
namespace {

std::string environment(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? std::string() : value;
}

uint64_t wall_ns() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000 + static_cast<uint64_t>(t.tv_nsec);
}

volatile sig_atomic_t g_interrupted_status = 0;

// Somebody who interrupts the reading of a large trace still gets the command's status.
void watch_interrupts(int status) {
  g_interrupted_status = exit_code(status);
  struct sigaction action {};
  action.sa_handler = [](int) { _exit(g_interrupted_status); };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaction(signal, &action, nullptr);
}

}  // namespace

int record(const std::vector<std::string>& words) {
  const std::string inherited = environment("TRACEALLOCFREE");
  const RecordLine line = parse_record(words, inherited);
  if (line.exit.has_value()) return *line.exit;
  const RecordOptions& options = line.options;

  const Target target = inspect_target(options.command[0]);
  const bool traced = target.obstacle.empty();
  std::vector<std::pair<std::string, std::string>> added;
  if (traced) {
    const Library library = find_library();
    if (library.path.empty()) {
      say(library.complaint);
      return kOwnFailure;
    }
    const std::string preloads = environment("LD_PRELOAD");
    added = {{"LD_PRELOAD", preloads.empty() ? library.path : library.path + ":" + preloads},
             {"TRACEALLOCFREE", inherited.empty() ? options.setting : inherited + "," + options.setting}};
  } else {
    say(fmt::format("{} {}; it runs untraced", target.path, target.obstacle));
  }

  const uint64_t since = wall_ns();
  const ChildEnd end = run_child(options.command, added);
  if (end.exec_error != 0) {
    say(fmt::format("{}: {}", options.command[0], strerror(end.exec_error)));
    return !end.forked ? kOwnFailure : end.exec_error == ENOENT ? kNotFound : kNotExecutable;
  }
  if (traced && !options.quiet) {
    watch_interrupts(end.status);
    try {
      tell_outcome({options.out, end.pid, since, options.setting.rfind("standby", 0) == 0});
    } catch (const std::exception& error) {
      say(fmt::format("the trace could not be summarised: {}", error.what()));
    }
  }
  end_like(end.status);
}

}  // namespace traceaf::launcher
