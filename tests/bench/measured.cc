// Runs a command and writes what it cost: measured RESULT [NAME=VALUE]... COMMAND [ARGUMENTS]. RESULT gets one line:
// wall time in ns, processor time of all its threads in ns, peak resident set in KiB. The exit status is the command's.
// A program of its own because the peak of a process counts what was resident before its exec: here hardly anything.
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

extern char** environ;

namespace {

long long nanoseconds(const timeval& t) { return t.tv_sec * 1000000000LL + t.tv_usec * 1000LL; }

}  // namespace

int main(int argc, char** argv) {
  int command = 2;
  std::vector<char*> environment;
  while (command < argc && std::strchr(argv[command], '=') != nullptr) environment.push_back(argv[command++]);
  if (command >= argc) {
    std::fputs("usage: measured RESULT [NAME=VALUE]... COMMAND [ARGUMENTS]\n", stderr);
    return 125;
  }
  for (char** e = environ; *e != nullptr; ++e) environment.push_back(*e);
  environment.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  if (posix_spawnp(&child, argv[command], nullptr, nullptr, argv + command, environment.data()) != 0) return 127;
  int status = 0;
  rusage used{};
  if (wait4(child, &status, 0, &used) != child) return 126;
  const auto wall = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start);
  std::FILE* result = std::fopen(argv[1], "w");
  if (result == nullptr) return 126;
  std::fprintf(result, "%lld %lld %ld\n", static_cast<long long>(wall.count()),
               nanoseconds(used.ru_utime) + nanoseconds(used.ru_stime), used.ru_maxrss);
  if (std::fclose(result) != 0) return 126;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
