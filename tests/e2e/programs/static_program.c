// Hazard: a statically linked program, which no preload reaches (O50 of the bug log).
// Right: it runs as plain; the launcher says that there is nothing to record and passes the status on.
#include "expect.h"

int main(void) {
  free(malloc(10));
  say("static\n");
  return 9;
}
