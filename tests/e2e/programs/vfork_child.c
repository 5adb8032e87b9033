// Hazard: a vfork child runs in its parent's memory: what a tool does there it does to the parent (O12 of the bug log).
// posix_spawn children likewise. Right: the parent's counts are exact; no child re-opens, renames or ends the trace.
#include <spawn.h>
#include <sys/wait.h>

#include "expect.h"

// No preload in the programs that the children become.
static char* const nothing[] = {NULL};

static void one_round(int i) {
  void* volatile left = NULL;
  const pid_t pid = vfork();
  if (pid == 0) {
    free(malloc(100));
    left = malloc(200);
    if (i % 3 == 0) execl("/nonexistent/program", "x", (char*)NULL);
    if (i % 3 == 1) execle("/bin/true", "true", (char*)NULL, nothing);
    _exit(7);
  }
  int status = 0;
  MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
  MUST(WIFEXITED(status) && WEXITSTATUS(status) == (i % 3 == 1 ? 0 : 7));
  MUST(left != NULL);
  free(left);
}

static void spawn(void) {
  char* const arguments[] = {(char*)"true", NULL};
  pid_t pid = 0;
  int status = 0;
  MUST(posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, nothing) == 0);
  MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

int main(void) {
  enum { kRounds = 300 };
  for (int i = 0; i < kRounds; ++i) {
    one_round(i);
    if (i % 10 == 0) spawn();
  }
  // The child's blocks are blocks of the one heap, so they count as this thread's.
  expect("allocations", "==", 2 * kRounds);
  expect("frees", "==", 2 * kRounds);
  expect("live_blocks", "==", 0);
  say("done\n");
  return 0;
}
