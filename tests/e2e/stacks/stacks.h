// The program `stacks`: allocates at every turn in code with unusual stacks, while signals interrupt it everywhere. It
// is built by several compilers and options; the library that checks captures judges it.
#pragma once

#include <cstdint>

#include "tests/unit/unwind/subject.h"

namespace stacks {

// malloc, new, realloc, free and delete with sizes that vary. Signal handlers call it too.
void churn();
// Ends the program with a word when what must hold does not.
void must(bool condition, const char* what);
// Blocks all signals for its life: around calls into the dynamic linker, whose lock a handler must not meet.
class Quiet {
 public:
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  uint64_t before_[16];
};

// All of subject.cc with one hook.
void unusual_frames(Hook hook, uint32_t seed);
// That on several threads at a time, which end, and again.
void short_threads(unsigned rounds);

// padded.S: function(argument), called at one of two places with `pad` bytes below the frame.
extern "C" void padded_call(void* function, void* argument, uintptr_t pad, int site);

// The cases. Each returns a number that depends on nothing but its work.
uint64_t frames();
uint64_t stale_words();
uint64_t raised_signals();
uint64_t deep_recursion();
uint64_t contexts();
uint64_t fibers();
uint64_t hand_written_coroutines();
uint64_t split_stack();  // with STACKS_SPLIT only
uint64_t code_without_tables();
uint64_t generated_code();
uint64_t reloaded_libraries();
uint64_t threads();
uint64_t children();

}  // namespace stacks
