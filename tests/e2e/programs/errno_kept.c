// Hazard: system calls of the recorder leak into errno (O40 of the bug log), at the first call as at every flush.
// Right: errno is 77 after each success; after a failure it is what the allocator set.
#include <errno.h>
#include <malloc.h>
#include <stdint.h>

#include "expect.h"

static void keeps(int* errno_wrong) {
  if (errno != 77) *errno_wrong += 1;
  errno = 77;
}

int main(void) {
  int wrong = 0;
  errno = 77;
  for (int i = 0; i < 100000; ++i) {
    void* p = malloc(50);
    keeps(&wrong);
    p = realloc(p, 100);
    keeps(&wrong);
    free(p);
    keeps(&wrong);
    p = calloc(3, 7);
    keeps(&wrong);
    free(p);
    keeps(&wrong);
    p = aligned_alloc(64, 128);
    keeps(&wrong);
    free(p);
    keeps(&wrong);
  }
  volatile size_t huge = PTRDIFF_MAX;
  void* kept = malloc(10);
  errno = 77;
  MUST(malloc(huge + 1) == NULL && errno == ENOMEM);
  errno = 77;
  MUST(calloc(huge, 4) == NULL && errno == ENOMEM);
  errno = 77;
  MUST(realloc(kept, huge + 1) == NULL && errno == ENOMEM);
  errno = 77;
  MUST(reallocarray(kept, huge, 8) == NULL && errno == ENOMEM);
  errno = 77;
  void* aligned = NULL;
  MUST(posix_memalign(&aligned, 24, 8) == EINVAL && errno == 77);
  MUST(posix_memalign(&aligned, 64, huge) == ENOMEM);
  MUST(malloc_usable_size(kept) >= 10);
  free(kept);
  expect("allocations", "==", 400001);
  expect("frees", "==", 400001);
  if (wrong != 0) {
    fprintf(stderr, "errno changed %d times\n", wrong);
    return 1;
  }
  say("done\n");
  return 0;
}
