// Frames of every shape on the thread's own stack, and a recursion far beyond the depth cap.
#include <alloca.h>
#include <pthread.h>

#include "tests/e2e/stacks/stacks.h"

extern "C" {
extern const Subject subject;
void no_cfi_call(void (*function)());
void no_cfi_frame_call(void (*function)());
void no_cfi_data_rbp_call(void (*function)(), uintptr_t rbp);
void data_rbp_call(void (*function)(), uintptr_t rbp);
void unknown_register_call(void (*function)());
void expression_call(void (*function)());
}

namespace stacks {
namespace {

#define NOINLINE __attribute__((noinline))

// Neighbouring calls of equal frame size from different callers: the stack differs further out only.
NOINLINE unsigned leaf(unsigned n) {
  churn();
  return n + 1;
}
NOINLINE unsigned by_one_way(unsigned n) { return leaf(n) + 1; }
NOINLINE unsigned by_another_way(unsigned n) { return leaf(n) + 2; }
NOINLINE unsigned by_either(unsigned n) { return n % 2 == 0 ? by_one_way(n) + 3 : by_another_way(n) + 4; }

// A variable length array as gcc has it in C++, of a size that changes with each call.
NOINLINE unsigned with_array(unsigned n, unsigned depth) {
  volatile char room[1 + n % 700];
  room[0] = static_cast<char>(n);
  churn();
  const unsigned sum = depth == 0 ? leaf(n) : with_array(n * 7 + 3, depth - 1);
  churn();
  return sum + static_cast<unsigned>(room[0]);
}

// Goes down and up by binary trees, as recursive programs do.
NOINLINE unsigned tree(unsigned n, unsigned depth) {
  churn();
  if (depth == 0) return n;
  const unsigned left = tree(2 * n, depth - 1);
  return left ^ tree(2 * n + 1, depth - 1);
}

NOINLINE unsigned deep(unsigned n, unsigned left) {
  if (left % 1000 == 0) churn();
  const unsigned sum = left == 0 ? n : deep(n * 3 + 1, left - 1);
  if (left % 5000 == 0) churn();
  return sum + 1;
}

}  // namespace

void unusual_frames(Hook hook, uint32_t seed) {
  subject.recursion(hook, 20);
  subject.random_alloca(hook, 20, seed);
  subject.realigned(hook, 12, seed);
  subject.large_frames(hook, 3);
  subject.exceptions(hook, 6);
  subject.after_longjmp(hook, 10);
  subject.tail_calls(hook, 5);
  subject.last_call_does_not_return(hook);
  subject.callbacks(hook);
}

uint64_t frames() {
  uint64_t sum = 0;
  for (unsigned i = 0; i < 10; ++i) {
    unusual_frames(churn, i);
    sum += by_either(i) + with_array(i, 8) + tree(i, 6);
  }
  return sum + subject.work(100);
}

uint64_t deep_recursion() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{64} << 20);
  pthread_t thread;
  static unsigned sum;
  const auto body = [](void*) -> void* {
    sum = deep(1, 100'000);
    return nullptr;
  };
  must(pthread_create(&thread, &attributes, body, nullptr) == 0, "pthread_create");
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return sum;
}

uint64_t code_without_tables() {
  for (unsigned i = 0; i < 40; ++i) {
    no_cfi_call(churn);
    no_cfi_frame_call(churn);
    no_cfi_data_rbp_call(churn, i * 8);
    no_cfi_data_rbp_call(churn, reinterpret_cast<uintptr_t>(&i) & ~uintptr_t{7});
    data_rbp_call(churn, i);
    unknown_register_call(churn);
    expression_call(churn);
    no_cfi_frame_call([] { no_cfi_frame_call([] { no_cfi_call(churn); }); });
    if (i % 8 == 0) no_cfi_frame_call([] { unusual_frames(churn, 1); });
  }
  return 1;
}

}  // namespace stacks
