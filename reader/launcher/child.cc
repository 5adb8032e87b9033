// Runs the command as a child (see child.h).
#include "reader/launcher/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace traceaf::launcher {
namespace {

constexpr int kForwarded[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

[[noreturn]] void become(const std::vector<std::string>& command,
                         const std::vector<std::pair<std::string, std::string>>& environment, int report) {
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  const int error = errno;
  while (write(report, &error, sizeof error) < 0 && errno == EINTR) {
  }
  _exit(127);
}

// Waits for the child's end and passes signals on. All of `signals` are blocked.
int attend(pid_t child, const sigset_t& signals) {
  for (;;) {
    siginfo_t info{};
    if (sigwaitinfo(&signals, &info) < 0) continue;  // EINTR: we were stopped and continued
    if (info.si_signo == SIGCHLD) {
      int status = 0;
      if (waitpid(child, &status, WNOHANG) == child) return status;
    } else if (info.si_code != SI_KERNEL && info.si_pid != child) {
      kill(child, info.si_signo);
    }
  }
}

}  // namespace

ChildEnd run_child(const std::vector<std::string>& command,
                   const std::vector<std::pair<std::string, std::string>>& environment) {
  ChildEnd end;
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) {
    end.exec_error = errno;
    return end;
  }
  sigset_t signals, before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  for (const int signal : kForwarded) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, &before);
  struct sigaction chld {
  }, chld_before{};
  chld.sa_handler = SIG_DFL;  // an inherited SIG_IGN would reap the child unseen
  sigaction(SIGCHLD, &chld, &chld_before);

  end.pid = fork();
  if (end.pid == 0) {
    sigaction(SIGCHLD, &chld_before, nullptr);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    become(command, environment, report[1]);
  }
  if (end.pid < 0) end.exec_error = errno;
  close(report[1]);
  if (end.pid > 0) {
    end.forked = true;
    ssize_t n = 0;
    while ((n = read(report[0], &end.exec_error, sizeof end.exec_error)) < 0 && errno == EINTR) {
    }
    if (n != static_cast<ssize_t>(sizeof end.exec_error)) end.exec_error = 0;
    end.status = attend(end.pid, signals);
  }
  close(report[0]);
  sigaction(SIGCHLD, &chld_before, nullptr);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return end;
}

int exit_code(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

void end_like(int status) {
  if (WIFSIGNALED(status)) {
    const int signal_number = WTERMSIG(status);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0);  // core_pattern pipes ignore the limit
    signal(signal_number, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, signal_number);
    sigprocmask(SIG_UNBLOCK, &only, nullptr);
    raise(signal_number);
  }
  _exit(exit_code(status));
}

}  // namespace traceaf::launcher
