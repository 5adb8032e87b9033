// Runs the command as a child that cannot tell it has a launcher: same terminal, group, signals and exit.
#pragma once

#include <sys/types.h>
#include <string>
#include <utility>
#include <vector>

namespace traceaf::launcher {

struct ChildEnd {
  pid_t pid = 0;
  int exec_error = 0;  // errno of fork or exec, 0: it ran
  bool forked = false;
  int status = 0;  // as from waitpid
};

// Runs `command` with `environment` added and waits for its end. Meanwhile SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1
// and SIGUSR2 sent to the launcher go to the child; those that the terminal made have reached it already and are not
// sent again.
ChildEnd run_child(const std::vector<std::string>& command,
                   const std::vector<std::pair<std::string, std::string>>& environment);

// What a shell would call `status`.
int exit_code(int status);

// Ends the launcher as the child ended: the same exit status, or the same signal without a second core file.
[[noreturn]] void end_like(int status);

}  // namespace traceaf::launcher
