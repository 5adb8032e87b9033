// Hazard: a C program opens a C++ library, privately, so that no operator new is known at the start nor visible by
// dlsym; it closes it again and opens it elsewhere, so that a kept address of one would dangle. Right: as plain, each
// block one event. Argument: the library.
#include <dlfcn.h>

#include "expect.h"

int main(int argc, char** argv) {
  MUST(argc == 2);
  long long blocks = 0;
  for (int i = 0; i < 20; ++i) {
    void* library = dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL);
    MUST(library != NULL);
    int (*make)(int) = (int (*)(int))dlsym(library, "cxx_blocks");
    MUST(make != NULL);
    const int made = make(100);
    MUST(made == 401);
    blocks += made;
    MUST(dlclose(library) == 0);
  }
  // dlopen and dlclose have blocks of their own, some for good.
  expect("allocations", ">=", blocks);
  expect("frees", ">=", blocks);
  expect("allocations", "<=", blocks + 20 * 60);
  expect("live_blocks", "<=", 60);
  say("done\n");
  return 0;
}
