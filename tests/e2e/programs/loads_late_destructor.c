// Hazard: a library whose destructor runs behind that of the recorder (its dlopen came later, or the loader sorts it
// so) frees blocks when the trace is already closed. Right: all of its births and deaths are recorded. Argument: the
// library.
#include <dlfcn.h>

#include "expect.h"

int main(int argc, char** argv) {
  MUST(argc == 2);
  MUST(dlopen(argv[1], RTLD_NOW) != NULL);
  expect("allocations", ">=", 2000);
  expect("frees", ">=", 2000);
  // What dlopen itself keeps is a handful of blocks.
  expect("live_blocks", "<=", 100);
  say("done\n");
  return 0;
}
