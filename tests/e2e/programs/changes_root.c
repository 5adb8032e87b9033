// Hazard: chroot to an empty folder, chdir and setuid: the output's path means nothing any more (O19 of the bug log).
// Right: the trace is whole in the place fixed at the start.
// Argument: the user to become.
#include <sys/stat.h>

#include "expect.h"

int main(int argc, char** argv) {
  MUST(argc == 2);
  const unsigned user = (unsigned)atoi(argv[1]);
  for (int i = 0; i < 1000; ++i) MUST(malloc(32) != NULL);
  expect("allocations", "==", 51000);
  MUST(mkdir("empty", 0755) == 0);
  MUST(chroot("empty") == 0);
  MUST(chdir("/") == 0);
  MUST(setgid(user) == 0 && setuid(user) == 0);
  for (int i = 0; i < 50000; ++i) free(malloc(32));
  say("done\n");
  return 0;
}
