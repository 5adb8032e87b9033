// Code with unusual stacks (see subject.h).
#include "tests/unit/unwind/subject.h"

#include <alloca.h>
#include <setjmp.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))

namespace {

std::atomic<unsigned> g_sink;
void sink(unsigned value) { g_sink.fetch_add(value, std::memory_order_relaxed); }

// Keeps a call from being the last thing that its function does.
NOINLINE void after() { sink(1); }

uint32_t next(uint32_t seed) { return seed * 1664525u + 1013904223u; }

NOINLINE void recursion(Hook hook, unsigned depth) {
  hook();
  if (depth > 0) recursion(hook, depth - 1);
  hook();
  after();
}

NOINLINE void random_alloca(Hook hook, unsigned depth, uint32_t seed) {
  const size_t bytes = 1 + (seed >> 8) % 3000;
  auto* room = static_cast<volatile char*>(alloca(bytes));
  room[0] = 1;
  room[bytes - 1] = 2;
  hook();
  if (depth > 0) random_alloca(hook, depth - 1, next(seed));
  sink(static_cast<unsigned>(room[0]));
  hook();
}

// An alignment above the stack's makes gcc reach the frame through a saved pointer; alloca moves the stack pointer
// besides.
NOINLINE void realigned(Hook hook, unsigned depth, uint32_t seed) {
  alignas(64) volatile char line[64];
  auto* room = static_cast<volatile char*>(alloca(1 + (seed >> 8) % 500));
  line[0] = 1;
  room[0] = 1;
  hook();
  if (depth > 0) realigned(hook, depth - 1, next(seed));
  hook();
  sink(static_cast<unsigned>(line[0]) + static_cast<unsigned>(room[0]));
}

NOINLINE void realigned_without_alloca(Hook hook, unsigned depth) {
  alignas(128) volatile char line[128];
  line[0] = 1;
  hook();
  if (depth > 0) realigned_without_alloca(hook, depth - 1);
  sink(static_cast<unsigned>(line[0]));
  hook();
}

NOINLINE void realigned_both(Hook hook, unsigned depth, uint32_t seed) {
  realigned_without_alloca(hook, depth);
  realigned(hook, depth, seed);
  after();
}

NOINLINE void large_frames(Hook hook, unsigned depth) {
  volatile char room[100'000];
  room[0] = 1;
  room[sizeof(room) - 1] = 1;
  hook();
  if (depth > 0) large_frames(hook, depth - 1);
  sink(static_cast<unsigned>(room[0]));
  hook();
}

struct CallsWhenDestroyed {
  explicit CallsWhenDestroyed(Hook called) : hook(called) {}
  ~CallsWhenDestroyed() {
    hook();
    after();
  }
  Hook hook;
};

NOINLINE void thrower(Hook hook, unsigned depth) {
  const CallsWhenDestroyed guard(hook);
  if (depth == 0) throw std::runtime_error("thrown");
  try {
    thrower(hook, depth - 1);
  } catch (const std::runtime_error&) {
    hook();
    throw;
  }
  after();
}

NOINLINE void exceptions(Hook hook, unsigned depth) {
  try {
    thrower(hook, depth);
  } catch (const std::exception& e) {
    hook();
    sink(static_cast<unsigned>(std::strlen(e.what())));
  }
  hook();
}

[[noreturn]] NOINLINE void jump_back(Hook hook, unsigned depth, jmp_buf* where) {
  hook();
  if (depth == 0) longjmp(*where, 1);
  jump_back(hook, depth - 1, where);
}

NOINLINE void after_longjmp(Hook hook, unsigned depth) {
  jmp_buf where;
  if (setjmp(where) == 0) {
    jump_back(hook, depth, &where);
  }
  hook();
  after();
}

NOINLINE void tail_end(Hook hook, unsigned depth);
NOINLINE void tail_middle(Hook hook, unsigned depth) { return depth == 0 ? hook() : tail_end(hook, depth - 1); }
NOINLINE void tail_end(Hook hook, unsigned depth) { return depth == 0 ? hook() : tail_middle(hook, depth - 1); }
NOINLINE void tail_calls(Hook hook, unsigned depth) {
  tail_middle(hook, depth);
  tail_end(hook, depth);
  after();
}

struct Stop {};
[[noreturn]] NOINLINE void never_returns(Hook hook) {
  hook();
  throw Stop{};
}
// Its call of never_returns is its last instruction: the return address lies in the next function.
NOINLINE void ends_in_call(Hook hook) {
  after();
  never_returns(hook);
}
NOINLINE void last_call_does_not_return(Hook hook) {
  try {
    ends_in_call(hook);
  } catch (const Stop&) {
    hook();
  }
  after();
}

thread_local Hook g_hook;
int compare_numbers(const void* a, const void* b) {
  g_hook();
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

NOINLINE void callbacks(Hook hook) {
  g_hook = hook;
  std::vector<int> numbers = {5, 3, 9, 1, 7};
  qsort(numbers.data(), numbers.size(), sizeof(int), compare_numbers);
  std::sort(numbers.begin(), numbers.end(), [hook](int a, int b) {
    hook();
    return a > b;
  });
  const std::function<void(int)> indirect = [hook, &numbers](int n) {
    if (n < static_cast<int>(numbers.size())) hook();
    after();
  };
  std::for_each(numbers.begin(), numbers.end(), indirect);
}

NOINLINE uint64_t mixed(uint64_t a, unsigned depth) {
  if (depth == 0) return a * 31;
  const size_t bytes = 16 + a % 64;
  auto* room = static_cast<volatile char*>(alloca(bytes));
  room[0] = static_cast<char>(a);
  const uint64_t left = mixed(a * 3 + 1, depth - 1);
  return left ^ mixed(left + static_cast<uint64_t>(room[0]), depth - 1);
}

NOINLINE uint64_t aligned_work(uint64_t a) {
  alignas(64) volatile uint64_t line[8];
  line[a % 8] = a;
  return mixed(a, 3) + line[a % 8];
}

NOINLINE uint64_t work(unsigned rounds) {
  uint64_t sum = 0;
  std::vector<std::string> texts;
  for (unsigned i = 0; i < rounds; ++i) {
    sum += mixed(i, 6) + aligned_work(i);
    texts.push_back(std::to_string(sum));
    if (texts.size() > 50) {
      std::sort(texts.begin(), texts.end());
      sum += texts.front().size() + std::strtoul(texts.back().c_str(), nullptr, 10);
      texts.clear();
    }
  }
  return sum;
}

}  // namespace

extern "C" __attribute__((visibility("default")))
const Subject subject = {recursion,  random_alloca, realigned_both, large_frames,
                         exceptions, after_longjmp, tail_calls,     last_call_does_not_return,
                         callbacks,  work};
