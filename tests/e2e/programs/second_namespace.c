// Hazard: the preloaded library once more in a namespace of its own (dlmopen, auditors), with a second libc: two
// recorders, or a crash in the second (O42 of the bug log). Right: as plain, one trace; the copy does nothing.
#include <dlfcn.h>

#include "expect.h"

int main(void) {
  const char* preload = getenv("LD_PRELOAD");
  const char* library = preload != NULL && preload[0] == '/' ? preload : "libm.so.6";
  void* copy = dlmopen(LM_ID_NEWLM, library, RTLD_NOW);
  MUST(copy != NULL);
  void* (*make)(size_t) = (void* (*)(size_t))dlsym(copy, "malloc");
  void (*drop)(void*) = (void (*)(void*))dlsym(copy, "free");
  MUST(make != NULL && drop != NULL && make != malloc);
  for (int i = 0; i < 1000; ++i) drop(make(1000));
  for (int i = 0; i < 1000; ++i) free(malloc(500));
  expect("allocations", ">=", 1000);
  expect("allocations", "<=", 1900);  // none of the copy's, some of dlmopen's
  say("done\n");
  return 0;
}
