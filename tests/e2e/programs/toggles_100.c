// Hazard: recording switched off and on 100 times by setenv while four threads allocate, so that a thread is in the
// middle of an event at each switch.
// Right: no deadlock, one readable trace; frees of blocks born while off are told from unknown ones.
#include <pthread.h>
#include <stdatomic.h>

#include "expect.h"

enum { kThreads = 4, kToggles = 100 };

static atomic_int stop;

static void* work(void* unused) {
  void* ring[64] = {0};
  for (unsigned i = 0; !atomic_load(&stop); ++i) {
    free(ring[i % 64]);
    ring[i % 64] = malloc(16 + i % 300);
  }
  for (int i = 0; i < 64; ++i) free(ring[i]);
  return unused;
}

int main(void) {
  const char* given = getenv("TRACEALLOCFREE");
  char on[4096], off[4200];
  snprintf(on, sizeof on, "%s", given == NULL ? "0" : given);
  snprintf(off, sizeof off, "%s,0", on);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) MUST(pthread_create(&threads[i], NULL, work, NULL) == 0);
  for (int i = 0; i < kToggles; ++i) {
    MUST(setenv("TRACEALLOCFREE", off, 1) == 0);
    usleep(500);
    MUST(setenv("TRACEALLOCFREE", on, 1) == 0);
    usleep(1500);
  }
  atomic_store(&stop, 1);
  for (int i = 0; i < kThreads; ++i) MUST(pthread_join(threads[i], NULL) == 0);
  expect("allocations", ">=", 1000);
  expect("unknown_frees", "==", 0);
  say("done\n");
  return 0;
}
