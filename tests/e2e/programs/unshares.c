// Hazard: unshare(CLONE_NEWUSER) fails in a process with more than one thread, a helper thread of the tool included.
// Right: it succeeds after the flusher has had reason to start, and recording goes on after it.
#include <sched.h>

#include "expect.h"

int main(void) {
  for (int i = 0; i < 200000; ++i) free(malloc(32));
  MUST(unshare(CLONE_NEWUSER) == 0);
  for (int i = 0; i < 200000; ++i) free(malloc(32));
  expect("allocations", "==", 400000);
  expect("frees", "==", 400000);
  say("done\n");
  return 0;
}
