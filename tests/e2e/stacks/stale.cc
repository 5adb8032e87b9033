// Stacks that differ in nothing near their inner end but rbp, or a saved rbp, while the words that an earlier stack
// left behind further out are all still there: whoever compares return addresses alone takes the old callers for the
// new.
#include "tests/e2e/stacks/stacks.h"

extern "C" {
void data_rbp_call(void (*function)(), uintptr_t rbp);
}

namespace stacks {
namespace {

constexpr uintptr_t kPad = 4096;

struct Inner {
  void* function;
  uintptr_t pad;
};

// The frame of padded_call for `churn`, directly or with another frame between that saves rbp.
__attribute__((noinline)) void inner(void* argument) {
  const auto* what = static_cast<const Inner*>(argument);
  const bool direct = what->function == reinterpret_cast<void*>(churn);
  padded_call(what->function, direct ? nullptr : reinterpret_cast<void*>(churn), what->pad, 0);
  asm volatile("" ::: "memory");
}

// The two paddings add up to the same, so the innermost frames lie at the same place each time.
void at_one_place(void* function, uintptr_t outer_pad, int site) {
  Inner what{function, kPad - outer_pad};
  padded_call(reinterpret_cast<void*>(inner), &what, outer_pad, site);
}

}  // namespace

uint64_t stale_words() {
  void* const functions[] = {reinterpret_cast<void*>(churn), reinterpret_cast<void*>(data_rbp_call)};
  for (unsigned i = 0; i < 300; ++i) {
    const uintptr_t pad = 16 * (1 + i % 200);
    for (void* function : functions) {
      at_one_place(function, 0, 0);
      at_one_place(function, pad, 1);
      at_one_place(function, 0, 1);
    }
  }
  return 1;
}

}  // namespace stacks
