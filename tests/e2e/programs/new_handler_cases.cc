// Hazard: code of the program runs inside operator new (a new_handler) and allocates, frees, throws, or jumps away; a
// depth counter then stays wrong and later blocks are lost or counted twice (O31, O41 of the bug log). Right: what the
// handler allocates and frees is recorded once, and so is everything behind it.
#include <csetjmp>
#include <new>

#include "expect.h"

namespace {

constexpr int kRounds = 200;
volatile std::size_t too_much = std::size_t{1} << 60;
std::jmp_buf back;
void* made;
long long births = 0, deaths = 0;

void allocates() {
  std::set_new_handler(nullptr);
  made = ::operator new(300);
  std::free(std::malloc(20));
}

struct Mine {};
void throws() {
  std::set_new_handler(nullptr);
  throw Mine();
}

void jumps() { std::longjmp(back, 1); }

// One block of each kind; where the depth is wrong, one of them is lost or doubled.
void ordinary() {
  std::free(std::malloc(64));
  delete[] new int[20];
  delete new int(5);
  births += 3;
  deaths += 3;
}

void fails(std::new_handler handler) {
  std::set_new_handler(handler);
  try {
    ::operator delete[](::operator new[](too_much));
  } catch (const std::bad_alloc&) {
    ordinary();
  } catch (const Mine&) {
    ordinary();
  }
  // The exception object is one birth and one death.
  births += 1;
  deaths += 1;
}

void jumps_out() {
  std::set_new_handler(&jumps);
  if (setjmp(back) == 0) ::operator delete(::operator new(too_much));
  std::set_new_handler(nullptr);
}

}  // namespace

int main() {
  for (int i = 0; i < kRounds; ++i) {
    fails(nullptr);
    fails(&allocates);
    ::operator delete(made);
    births += 2;
    deaths += 2;
    fails(&throws);
    ordinary();
    jumps_out();
    ordinary();
    MUST(::operator new(too_much, std::nothrow) == nullptr);
    // libstdc++ throws and catches inside: an exception object each.
    MUST(::operator new[](too_much, std::nothrow) == nullptr);
    births += 2;
    deaths += 2;
  }
  expect("allocations", "==", births + 1);
  expect("frees", "==", deaths);
  expect("live_blocks", "==", 1);
  say("done\n");
  return 0;
}
