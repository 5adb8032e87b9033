// Hazard: reallocs in every course: grown in place, moved, shrunk, across the mmap threshold and back, failed.
// Right: the totals of independent_counts.py; a failed one leaves the block as it was.
#include <stdint.h>

#include "expect.h"

int main(void) {
  char* a = NULL;
  for (size_t size = 1; size < (8 << 20); size += size / 3 + 1) {
    a = realloc(a, size);
    MUST(a != NULL);
    a[size - 1] = 1;
    free(malloc(size % 1000));
  }
  for (size_t size = 8 << 20; size > 1; size -= size / 3 + 1) {
    a = realloc(a, size);
    MUST(a != NULL);
  }
  // Volatile, so that no compiler judges the size.
  volatile size_t huge = PTRDIFF_MAX;
  char* same = realloc(a, huge + 1);
  MUST(same == NULL);
  a[0] = 7;
  char* kept[100];
  for (int i = 0; i < 100; ++i) kept[i] = calloc(7, (size_t)i);
  for (int i = 0; i < 100; i += 2) free(kept[i]);
  free(a);
  say("done\n");
  return 0;
}
