// Hazard: 500 threads alive at the same time, each with events: a fixed table of threads, or one slot a thread too few,
// loses some of them (O08 of the bug log).
// Right: every thread distinct, every event of each there.
#include <pthread.h>

#include "expect.h"

enum { kThreads = 500, kBlocks = 100 };

static pthread_barrier_t all_alive;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long long thread_vectors;
static void* kept[kThreads][kBlocks / 2];

static void* work(void* argument) {
  void** keep = argument;
  pthread_barrier_wait(&all_alive);
  for (int i = 0; i < kBlocks; ++i) {
    void* p = malloc(24);
    MUST(p != NULL);
    if (i % 2 == 0) {
      keep[i / 2] = p;
    } else {
      free(p);
    }
  }
  pthread_mutex_lock(&lock);
  thread_vectors += dtv_bytes();
  pthread_mutex_unlock(&lock);
  pthread_barrier_wait(&all_alive);
  return NULL;
}

int main(void) {
  static pthread_t threads[kThreads];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  // Small enough that glibc's cache holds all stacks of ended threads (40 MiB), with their thread vectors.
  pthread_attr_setstacksize(&attributes, 64 << 10);
  pthread_barrier_init(&all_alive, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i) MUST(pthread_create(&threads[i], &attributes, work, kept[i]) == 0);
  for (int i = 0; i < kThreads; ++i) MUST(pthread_join(threads[i], NULL) == 0);
  expect("allocations", "==", kThreads * kBlocks + kThreads);
  expect("frees", "==", kThreads * kBlocks / 2);
  expect("live_blocks", "==", kThreads * kBlocks / 2 + kThreads);
  expect("live_bytes", "==", kThreads * kBlocks / 2 * 24 + thread_vectors);
  expect("threads", ">=", kThreads + 1);
  say("done\n");
  return 0;
}
