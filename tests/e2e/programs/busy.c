// A plain victim for faults of the output: allocates and frees ARGUMENT blocks, from two threads, then prints a sum.
#include <pthread.h>

#include "expect.h"

static long blocks;

static void* work(void* sum) {
  void* ring[256] = {0};
  for (long i = 0; i < blocks; ++i) {
    free(ring[i % 256]);
    ring[i % 256] = malloc(16 + (size_t)i % 2000);
    MUST(ring[i % 256] != NULL);
    *(long*)sum += i % 2000;
  }
  for (int i = 0; i < 256; ++i) free(ring[i]);
  return NULL;
}

int main(int argc, char** argv) {
  MUST(argc == 2);
  blocks = atol(argv[1]);
  long sums[2] = {0, 0};
  pthread_t other;
  MUST(pthread_create(&other, NULL, work, &sums[1]) == 0);
  work(&sums[0]);
  MUST(pthread_join(other, NULL) == 0);
  char text[64];
  snprintf(text, sizeof text, "%ld %ld\n", sums[0], sums[1]);
  say(text);
  return 5;
}
