// Hazard: children without exec that write into the parent's file, or into nothing (O13 of the bug log).
// Right: one trace for each process, each with exactly the births of its own process.
#include <sys/wait.h>

#include "expect.h"

static void allocate(int blocks) {
  for (int i = 0; i < blocks; ++i) MUST(malloc(100) != NULL);
}

int main(void) {
  allocate(10);
  for (int child = 1; child <= 3; ++child) {
    const pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
      allocate(100 * child);
      expect("allocations", "==", 100 * child);
      expect("allocated_bytes", "==", 100 * 100 * child);
      _exit(child);
    }
    int status = 0;
    MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == child);
    allocate(10);
  }
  expect("allocations", "==", 40);
  expect("frees", "==", 0);
  expect("live_bytes", "==", 4000);
  say("done\n");
  return 0;
}
