// What the tests call in the subjects: code with unusual stacks, built as shared objects by several compilers and
// options.
#pragma once

#include <cstdint>

using Hook = void (*)();

// One table a subject, exported as `subject`. Each function calls `hook` from the place that its name says.
struct Subject {
  void (*recursion)(Hook hook, unsigned depth);
  void (*random_alloca)(Hook hook, unsigned depth, uint32_t seed);
  void (*realigned)(Hook hook, unsigned depth, uint32_t seed);
  void (*large_frames)(Hook hook, unsigned depth);
  void (*exceptions)(Hook hook, unsigned depth);  // in destructors, handlers, behind rethrows
  void (*after_longjmp)(Hook hook, unsigned depth);
  void (*tail_calls)(Hook hook, unsigned depth);
  void (*last_call_does_not_return)(Hook hook);
  void (*callbacks)(Hook hook);       // through libc and libstdc++
  uint64_t (*work)(unsigned rounds);  // calls and returns much; for interruption anywhere
};
