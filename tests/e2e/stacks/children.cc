// Children by fork and vfork that allocate on copies of this stack or on the stack itself, and one that no preload
// reaches.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tests/e2e/stacks/stacks.h"

namespace stacks {
namespace {

void wait_for(pid_t child) {
  int status = 0;
  must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7, "the child ended well");
}

// In the child from deep inside, so that its first walks meet what the parent's memo remembers.
__attribute__((noinline)) void fork_at(unsigned depth) {
  churn();
  if (depth != 0) {
    fork_at(depth - 1);
    churn();
    return;
  }
  const pid_t child = fork();
  must(child >= 0, "fork");
  if (child == 0) {
    unusual_frames(churn, 5);
    short_threads(1);
    _exit(7);
  }
  unusual_frames(churn, 6);
  wait_for(child);
}

__attribute__((noinline)) void vfork_once() {
  const Quiet quiet;
  const pid_t child = vfork();
  if (child == 0) {
    churn();
    unusual_frames(churn, 7);
    _exit(7);
  }
  must(child > 0, "vfork");
  wait_for(child);
}

void run_static_program() {
  char path[4096];
  const ssize_t bytes = readlink("/proc/self/exe", path, sizeof(path) - 100);
  must(bytes > 0, "readlink");
  path[bytes] = 0;
  strcpy(strrchr(path, '/') + 1, "stacks_static_child");
  const pid_t child = fork();
  must(child >= 0, "fork");
  if (child == 0) {
    churn();
    execl(path, path, static_cast<char*>(nullptr));
    _exit(1);
  }
  wait_for(child);
}

}  // namespace

uint64_t children() {
  for (unsigned i = 0; i < 3; ++i) fork_at(i * 7);
  for (unsigned i = 0; i < 10; ++i) vfork_once();
  run_static_program();
  return 1;
}

}  // namespace stacks
