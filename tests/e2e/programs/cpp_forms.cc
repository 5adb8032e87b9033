// Hazard: operator forms that are missed or counted twice, since new[] calls new and new calls malloc (O44 of the bug
// log). Right: one birth and one death for each block, whatever the form. The pool of libstdc++ for exceptions is one
// more.
#include <new>
#include <string>

#include "expect.h"

struct alignas(64) Wide {
  char bytes[64];
};

int main() {
  constexpr int kRounds = 1000;
  for (int i = 0; i < kRounds; ++i) {
    delete new int(i);
    delete[] new int[10];
    delete new (std::nothrow) int(i);
    delete[] new (std::nothrow) int[10];
    delete new Wide;
    delete[] new Wide[3];
    delete new (std::nothrow) Wide;
    delete[] new (std::nothrow) Wide[3];
    ::operator delete (::operator new(24), std::size_t{24});
    const std::string text(100, 'x');
    MUST(text.size() == 100);
  }
  bool thrown = false;
  try {
    volatile std::size_t huge = PTRDIFF_MAX;
    ::operator delete(::operator new(huge));
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  MUST(thrown);
  // The exception object itself is one birth and one death.
  expect("allocations", "==", 10 * kRounds + 2);
  expect("frees", "==", 10 * kRounds + 1);
  expect("live_blocks", "==", 1);
  say("done\n");
  return 0;
}
