// Stacks in pieces: this file alone is compiled by g++ with -fsplit-stack, so that its frames lie in segments that are
// mapped and given back as the recursion grows and shrinks.
#include "tests/e2e/stacks/stacks.h"

namespace stacks {
namespace {

// Large frames: a new segment every few calls.
__attribute__((noinline)) unsigned split(unsigned n, unsigned depth) {
  volatile char room[3000];
  room[n % sizeof(room)] = static_cast<char>(n);
  churn();
  const unsigned sum = depth == 0 ? n : split(n * 5 + 1, depth - 1);
  churn();
  return sum + static_cast<unsigned>(room[n % sizeof(room)]);
}

}  // namespace

uint64_t split_stack() {
  uint64_t sum = 0;
  for (unsigned i = 0; i < 10; ++i) sum += split(i, 100 + i * 20);
  return sum;
}

}  // namespace stacks
