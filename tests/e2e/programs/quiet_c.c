// Hazard: none of its own; the program of cases that preload further libraries. Maps, allocates, frees.
// Right: nothing but its own blocks and those of the other preload, all of them freed.
#include <sys/mman.h>

#include "expect.h"

int main(void) {
  for (int i = 0; i < 1000; ++i) {
    void* p = NULL;
    MUST(posix_memalign(&p, 64, 100) == 0);
    free(p);
    p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(p != MAP_FAILED && munmap(p, 4096) == 0);
    free(calloc(10, 10));
    free(realloc(malloc(10), 1000));
  }
  // Image 0 of this process is the shell.
  expect_image(1, "allocations", ">=", 4000);
  expect_image(1, "live_blocks", "<=", 20);
  say("done\n");
  return 0;
}
