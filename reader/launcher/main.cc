// traceaf: records a command, or switches the recorder of a running process.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>

#include "reader/launcher/control.h"
#include "reader/launcher/record.h"
#include "reader/launcher/say.h"

namespace traceaf::launcher {
namespace {

constexpr std::array<std::string_view, 4> kControls = {"on", "off", "standby", "status"};

void print_help() {
  fmt::print(
      "Records every allocation of a program, for traceaf-report to read.\n"
      "\n"
      "usage: traceaf record [options] -- COMMAND [ARGS]\n"
      "       traceaf COMMAND [ARGS]\n"
      "       traceaf on|off|standby|status PID\n"
      "\n"
      "Verbs:\n"
      "  record    run a command with every allocation recorded (see traceaf record --help)\n"
      "  on        start recording in a process that was started with libtraceaf.so\n"
      "  off       stop recording there; the program goes on\n"
      "  standby   follow its live blocks without writing, so that a later `on` starts with all of them\n"
      "  status    say whether it is being recorded, and what was lost\n"
      "\n"
      "  -h, --help     this text\n"
      "  --version      the version\n"
      "\n"
      "TRACEAF_LIBRARY names libtraceaf.so where it is not found beside this program.\n");
}

int run(std::vector<std::string> words) {
  if (words.empty()) {
    print_help();
    return kUsage;
  }
  if (words[0] == "-h" || words[0] == "--help" || words[0] == "help") {
    print_help();
    return kOk;
  }
  if (words[0] == "--version") {
    fmt::print("traceaf {}\n", TRACEAF_VERSION);
    return kOk;
  }
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (words[0] == "record") return record(rest);
  if (std::find(kControls.begin(), kControls.end(), words[0]) != kControls.end()) return control(words[0], rest);
  return record(words);
}

}  // namespace
}  // namespace traceaf::launcher

int main(int argc, char** argv) {
  try {
    return traceaf::launcher::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    traceaf::launcher::say(error.what());
  }
  return traceaf::launcher::kOwnFailure;
}
