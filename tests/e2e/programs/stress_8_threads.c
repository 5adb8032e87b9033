// Hazard: 8 threads malloc, realloc and free each other's blocks at reused addresses, so that one event recorded out of
// order, twice or not at all breaks the books (O39 of the bug log).
// Right: no unknown free, no address live twice, and every total is what the program itself counted.
// Arguments: operations in all.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "expect.h"

enum { kThreads = 8, kSlots = 4096 };

struct Block {
  size_t bytes;
};

static _Atomic(struct Block*) slots[kSlots];
static _Atomic long long allocations, frees, allocated_bytes, live_bytes, thread_vectors;
static long long operations;

static void put_away(struct Block* block, long long* freed, long long* live) {
  if (block == NULL) return;
  *freed += 1;
  *live -= (long long)block->bytes;
  free(block);
}

static void* work(void* seed) {
  uint64_t state = (uint64_t)(uintptr_t)seed * 0x9e3779b97f4a7c15u + 1;
  long long born = 0, freed = 0, bytes = 0, live = 0;
  for (long long i = 0; i < operations / kThreads; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const size_t slot = state % kSlots;
    const size_t size = sizeof(struct Block) + (state >> 20) % ((state >> 50) % 64 == 0 ? 20000 : 200);
    struct Block* old = atomic_exchange(&slots[slot], NULL);
    const unsigned what = (unsigned)(state >> 33) % 4;
    if (what == 0) {
      put_away(old, &freed, &live);
      continue;
    }
    struct Block* fresh;
    if (what == 1 && old != NULL) {
      live -= (long long)old->bytes;
      freed += 1;
      fresh = realloc(old, size);
    } else {
      put_away(old, &freed, &live);
      fresh = malloc(size);
    }
    MUST(fresh != NULL);
    fresh->bytes = size;
    born += 1;
    bytes += (long long)size;
    live += (long long)size;
    put_away(atomic_exchange(&slots[slot], fresh), &freed, &live);
  }
  atomic_fetch_add(&allocations, born);
  atomic_fetch_add(&frees, freed);
  atomic_fetch_add(&allocated_bytes, bytes);
  atomic_fetch_add(&live_bytes, live);
  atomic_fetch_add(&thread_vectors, dtv_bytes());
  return NULL;
}

int main(int argc, char** argv) {
  MUST(argc == 2);
  operations = atoll(argv[1]);
  pthread_t threads[kThreads];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  // Small enough that glibc's cache of 40 MiB keeps the stacks of all ended threads, with their thread vectors.
  pthread_attr_setstacksize(&attributes, 256 << 10);
  for (uintptr_t i = 0; i < kThreads; ++i) MUST(pthread_create(&threads[i], &attributes, work, (void*)(i + 1)) == 0);
  for (int i = 0; i < kThreads; ++i) MUST(pthread_join(threads[i], NULL) == 0);
  long long blocks = 0, bytes = 0;
  for (int i = 0; i < kSlots; ++i) {
    if (slots[i] == NULL) continue;
    blocks += 1;
    bytes += (long long)slots[i]->bytes;
  }
  MUST(blocks == allocations - frees && bytes == live_bytes);
  expect("allocations", "==", allocations + kThreads);
  expect("frees", "==", frees);
  expect("allocated_bytes", "==", allocated_bytes + thread_vectors);
  expect("live_blocks", "==", blocks + kThreads);
  expect("live_bytes", "==", bytes + thread_vectors);
  expect("threads", ">=", kThreads + 1);
  say("done\n");
  return 0;
}
