// Many short threads, whose stacks and thread records are used again, some with a signal stack of their own.
#include <pthread.h>
#include <signal.h>

#include <cstdlib>

#include "tests/e2e/stacks/stacks.h"

namespace stacks {
namespace {

void* body(void* argument) {
  const auto number = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(argument));
  static thread_local char room[128 << 10];
  if (number % 2 == 0) {
    stack_t stack{};
    stack.ss_sp = room;
    stack.ss_size = sizeof(room);
    must(sigaltstack(&stack, nullptr) == 0, "sigaltstack");
  }
  unusual_frames(churn, number);
  return nullptr;
}

}  // namespace

void short_threads(unsigned rounds) {
  constexpr unsigned kAtOnce = 6;
  for (uintptr_t round = 0; round < rounds; ++round) {
    pthread_t all[kAtOnce];
    for (uintptr_t i = 0; i < kAtOnce; ++i) {
      must(pthread_create(&all[i], nullptr, body, reinterpret_cast<void*>(round * kAtOnce + i)) == 0, "pthread_create");
    }
    for (const pthread_t thread : all) must(pthread_join(thread, nullptr) == 0, "pthread_join");
  }
}

uint64_t threads() {
  short_threads(12);
  return 1;
}

}  // namespace stacks
