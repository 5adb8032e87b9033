// Runs a program and keeps what it wrote and how it ended (see run_program.h).
#include "run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace traceaf::test {

int Ran::code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }
int Ran::signal() const { return WIFSIGNALED(status) ? WTERMSIG(status) : 0; }

Ran run(const std::vector<std::string>& command, const How& how) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) abort();
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    if (how.ignore_sigchld) ::signal(SIGCHLD, SIG_IGN);
    if (!how.folder.empty() && chdir(how.folder.c_str()) != 0) _exit(99);
    for (const auto& [name, value] : how.environment) setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    _exit(98);
  }
  close(out[1]);
  close(err[1]);
  Ran ran;
  bool started = false;
  pollfd fds[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* const texts[2] = {&ran.out, &ran.err};
  for (int open = 2; open > 0;) {
    poll(fds, 2, -1);
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t n = read(fds[i].fd, buffer, sizeof buffer);
      if (n <= 0) {
        close(fds[i].fd);
        fds[i].fd = -1;
        --open;
        continue;
      }
      texts[i]->append(buffer, static_cast<size_t>(n));
      if (i == 0 && !started && how.meanwhile) {
        started = true;
        how.meanwhile(pid);
      }
    }
  }
  waitpid(pid, &ran.status, 0);
  return ran;
}

Folder::Folder() {
  path_ = (std::filesystem::temp_directory_path() / "traceaf_views_XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) abort();
}

Folder::~Folder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string Folder::path(const std::string& name) const { return name.empty() ? path_ : path_ + "/" + name; }

std::string Folder::write(const std::string& name, const std::string& text, int mode) const {
  const std::string full = path(name);
  std::ofstream(full, std::ios::binary) << text;
  chmod(full.c_str(), static_cast<mode_t>(mode));
  return full;
}

}  // namespace traceaf::test
