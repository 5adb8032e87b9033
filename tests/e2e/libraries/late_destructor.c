// Frees in its destructor what its constructor allocated: 1000 blocks, and allocates and frees 1000 more there.
#include <stdlib.h>

static void* blocks[1000];

__attribute__((constructor)) static void begin(void) {
  for (int i = 0; i < 1000; ++i) blocks[i] = malloc(40);
}

__attribute__((destructor)) static void end(void) {
  for (int i = 0; i < 1000; ++i) {
    free(blocks[i]);
    free(malloc(48));
  }
}
