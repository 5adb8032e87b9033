// Hazard: destructors of thread-specific data and thread_local objects allocate and free when the tool's own state of
// the thread is gone (O07 of the bug log); threads that end by pthread_exit or cancellation. Right: no crash, every
// event there.
#include <pthread.h>

#include <ctime>
#include <vector>

#include "expect.h"

namespace {

pthread_key_t key;

// libc calls it again while the key has a value, four times at most.
void destroy(void* value) {
  const long left = *static_cast<long*>(value) - 1;
  free(value);
  if (left == 0) return;
  auto* next = static_cast<long*>(malloc(sizeof(long)));
  *next = left;
  pthread_setspecific(key, next);
}

struct Late {
  ~Late() { free(malloc(500)); }
};
thread_local Late late;

enum Ending { kReturns, kExits, kIsCancelled };

void* work(void* how) {
  asm volatile("" : : "r"(&late) : "memory");
  auto* value = static_cast<long*>(malloc(sizeof(long)));
  *value = 4;
  pthread_setspecific(key, value);
  free(malloc(30));
  switch (static_cast<Ending>(reinterpret_cast<long>(how))) {
    case kReturns:
      return nullptr;
    case kExits:
      pthread_exit(nullptr);
    case kIsCancelled:
      for (;;) {
        const timespec time{0, 1000000};
        nanosleep(&time, nullptr);
      }
  }
  return nullptr;
}

}  // namespace

int main() {
  constexpr int kRounds = 100;
  MUST(pthread_key_create(&key, &destroy) == 0);
  for (int i = 0; i < kRounds; ++i) {
    const long how = i % 3;
    pthread_t thread;
    MUST(pthread_create(&thread, nullptr, &work, reinterpret_cast<void*>(how)) == 0);
    if (how == kIsCancelled) {
      usleep(2000);
      MUST(pthread_cancel(thread) == 0);
    }
    MUST(pthread_join(thread, nullptr) == 0);
  }
  // Each thread: four values of the key, one block of its own, one of its thread_local's destructor, which libstdc++
  // registers with a block. Besides: vectors of thread data, libgcc_s, the pool for exceptions.
  expect("allocations", ">=", 6 * kRounds);
  expect("frees", ">=", 6 * kRounds);
  expect("live_blocks", "<=", 40);
  expect("threads", "==", kRounds + 1);
  say("done\n");
  return 0;
}
