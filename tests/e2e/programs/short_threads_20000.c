// Hazard: 20,000 threads one after another, most with the tid of a dead one: records that are never taken back, or
// two threads taken for one (O08 of the bug log).
// Right: every thread counted; resident memory does not grow with threads that are gone (at most 12 MiB here; memory of
// 20,000 kept records would be 1 GiB).
#include <pthread.h>

#include "expect.h"

enum { kThreads = 20000, kWarm = 2000, kGrowthPages = (12 << 20) / 4096 };

static void* work(void* unused) {
  free(malloc(40));
  return unused;
}

static long resident_pages(void) {
  char text[128] = {0};
  const int fd = open("/proc/self/statm", O_RDONLY);
  MUST(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
  close(fd);
  long size, resident;
  MUST(sscanf(text, "%ld %ld", &size, &resident) == 2);
  return resident;
}

int main(void) {
  long before = 0;
  for (int i = 0; i < kThreads; ++i) {
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, work, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    if (i == kWarm) before = resident_pages();
  }
  const long growth = resident_pages() - before;
  if (growth > kGrowthPages) {
    fprintf(stderr, "resident memory grew by %ld KiB over %d threads\n", growth * 4, kThreads - kWarm);
    return 1;
  }
  expect("allocations", ">=", kThreads);
  expect("threads", ">=", kThreads + 1);
  say("done\n");
  return 0;
}
