// Hazard: a daemon closes every descriptor, fd 2 and the tool's own among them, and its data file gets the number (O15,
// O16 of the bug log).
// Right: the data file is byte for byte as plain; recording goes on or stops with a mark.
#include "expect.h"

int main(void) {
  for (int i = 0; i < 50000; ++i) free(malloc(32));
  closefrom(2);
  int fds[64];
  for (int i = 0; i < 64; ++i) {
    char name[32];
    snprintf(name, sizeof name, "data.%d", i);
    fds[i] = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    // The flusher opens files of /proc for a moment, so a number may be passed over; none may be taken for good.
    MUST(fds[i] >= i + 2 && fds[i] <= i + 6);
  }
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 20000; ++i) free(malloc(32));
    for (int i = 0; i < 64; ++i) MUST(write(fds[i], "line\n", 5) == 5);
  }
  say("done\n");
  return 0;
}
