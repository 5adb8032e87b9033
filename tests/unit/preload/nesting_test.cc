// One block, one event: what happens when the real call runs code of the program, is left by an exception or a jump, or
// is interrupted by a signal.
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <new>

#include "notes.h"

namespace {

using fake::record;
using fake::text;

constexpr size_t kTooMuch = size_t{1} << 62;
volatile size_t g_too_much = kTooMuch;
void* g_made = nullptr;
void* g_kept = nullptr;
jmp_buf g_back;

// Depth is right when the next calls are recorded as ordinary ones.
void expect_depth_is_right() {
  void* p = nullptr;
  const auto notes = record([&] {
    p = malloc(5);
    free(p);
    ::operator delete(::operator new(6));
  });
  EXPECT_EQ(text(notes), "born malloc 5; dying; born operator new 6; dying");
}

void give_up() {
  std::set_new_handler(nullptr);
  g_made = malloc(100);
}

TEST(Nesting, AnExceptionPassesThroughNew) {
  bool caught = false;
  const auto notes = record([&] {
    try {
      ::operator delete(::operator new(g_too_much));
    } catch (const std::bad_alloc&) {
      caught = true;
    }
  });
  EXPECT_TRUE(caught);
  // The exception object is the only block, born and dead.
  ASSERT_EQ(notes.size(), 2U) << text(notes);
  EXPECT_EQ(notes[0].what, fake::What::kBorn);
  EXPECT_EQ(notes[1].what, fake::What::kDying);
  EXPECT_EQ(notes[0].p, notes[1].p);
  expect_depth_is_right();
}

// operator new called from `kRoom` bytes further down the stack, which are not written.
template <size_t kRoom>
[[gnu::noinline]] void* new_below(size_t size) {
  char room[kRoom];
  asm volatile("" : : "r"(room) : "memory");
  void* p = ::operator new(size);
  asm volatile("" : : "r"(room) : "memory");
  return p;
}

// In the catch block the frame of the wrapper that was left still stands in memory, above the new call: only the
// personality routine knows that it is gone.
TEST(Nesting, TheDepthIsRightAlreadyInTheCatchBlock) {
  void* p = nullptr;
  const auto notes = record([&] {
    try {
      ::operator delete(new_below<2048>(g_too_much));
    } catch (const std::bad_alloc&) {
      p = new_below<16384>(44);
    }
  });
  ASSERT_EQ(notes.size(), 3U) << text(notes);
  EXPECT_EQ(fake::describe(notes[1]), "born operator new 44");
  EXPECT_EQ(notes[1].p, p);
  ::operator delete(p);
}

TEST(Nesting, AnExceptionPassesThroughNewInNewArray) {
  bool caught = false;
  void* none = &caught;
  record([&] {
    try {
      ::operator delete[](::operator new[](g_too_much));
    } catch (const std::bad_alloc&) {
      caught = true;
    }
    none = ::operator new[](g_too_much, std::nothrow);
  });
  EXPECT_TRUE(caught);
  EXPECT_EQ(none, nullptr);
  expect_depth_is_right();
}

TEST(Nesting, WhatANewHandlerAllocatesIsItsOwnEvent) {
  std::set_new_handler(&give_up);
  const auto notes = record([&] {
    try {
      ::operator delete(::operator new(g_too_much));
    } catch (const std::bad_alloc&) {
    }
  });
  ASSERT_GE(notes.size(), 1U);
  EXPECT_EQ(fake::describe(notes[0]), "born malloc 100");
  EXPECT_EQ(notes[0].p, g_made);
  const auto handler = reinterpret_cast<uintptr_t>(&give_up);
  EXPECT_GT(notes[0].return_address, handler);
  EXPECT_LT(notes[0].return_address, handler + 128);
  free(g_made);
  expect_depth_is_right();
}

void free_what_is_kept() {
  std::set_new_handler(nullptr);
  free(g_kept);
}

TEST(Nesting, WhatANewHandlerFreesIsADeath) {
  g_kept = malloc(50);
  void* kept = g_kept;
  std::set_new_handler(&free_what_is_kept);
  const auto notes = record([&] {
    try {
      ::operator delete(::operator new(g_too_much));
    } catch (const std::bad_alloc&) {
    }
  });
  ASSERT_GE(notes.size(), 1U);
  EXPECT_EQ(notes[0].what, fake::What::kDying);
  EXPECT_EQ(notes[0].p, kept);
  expect_depth_is_right();
}

struct Mine {};
void throw_mine() {
  std::set_new_handler(nullptr);
  g_made = ::operator new(7);
  throw Mine();
}

TEST(Nesting, ANewHandlerMayThrow) {
  std::set_new_handler(&throw_mine);
  bool caught = false;
  std::vector<fake::Note> notes = record([&] {
    try {
      ::operator delete(::operator new(g_too_much));
    } catch (const Mine&) {
      caught = true;
    }
  });
  EXPECT_TRUE(caught);
  ASSERT_EQ(notes.size(), 3U) << text(notes);
  EXPECT_EQ(notes[0].p, g_made);      // named malloc: only the outer call's own block waits for its name
  EXPECT_EQ(notes[1].p, notes[2].p);  // the exception object
  ::operator delete(g_made);
  expect_depth_is_right();
}

void jump_away() { longjmp(g_back, 1); }

TEST(Nesting, ANewHandlerMayJumpAway) {
  for (int round = 0; round < 3; ++round) {
    std::set_new_handler(&jump_away);
    void* p = nullptr;
    const auto notes = record([&] {
      if (setjmp(g_back) == 0) ::operator delete(::operator new(g_too_much));
      p = malloc(9);
      free(p);
    });
    std::set_new_handler(nullptr);
    EXPECT_EQ(text(notes), "born malloc 9; dying");
    expect_depth_is_right();
  }
}

// A handler whose block has the very size that the outer call asks for is still an event of its own.
void take_the_same_size() {
  std::set_new_handler(nullptr);
  g_made = malloc(1 << 10);
  throw std::bad_alloc();
}

TEST(Nesting, ABlockOfTheOuterSizeIsNotLostWhenTheCallIsLeft) {
  // The outer call must fail once: an alignment that no allocator has.
  volatile size_t far_too_wide = size_t{1} << 61;
  const std::align_val_t align{far_too_wide};
  std::set_new_handler(&take_the_same_size);
  const auto notes = record([&] {
    try {
      ::operator delete(::operator new(1 << 10, align), align);
    } catch (const std::bad_alloc&) {
    }
  });
  size_t found = 0;
  for (const auto& n : notes) found += n.what == fake::What::kBorn && n.p == g_made ? 1 : 0;
  EXPECT_EQ(found, 1U) << text(notes);
  free(g_made);
  expect_depth_is_right();
}

void* g_in_handler = nullptr;
void allocate_in_handler(int) {
  g_in_handler = malloc(33);
  free(g_in_handler);
}
void handler_that_raises() {
  std::set_new_handler(nullptr);
  raise(SIGUSR1);
}

// The signal arrives while an operator new is announced; its handler runs on this stack, or on one of its own.
void signal_inside_new(bool own_stack) {
  static char stack[65536];
  stack_t ours{};
  stack_t before{};
  ours.ss_sp = stack;
  ours.ss_size = sizeof(stack);
  if (own_stack) {
    ASSERT_EQ(sigaltstack(&ours, &before), 0);
  }
  struct sigaction action {};
  action.sa_handler = &allocate_in_handler;
  action.sa_flags = own_stack ? SA_ONSTACK : 0;
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  std::set_new_handler(&handler_that_raises);
  const auto notes = record([&] {
    try {
      ::operator delete(::operator new(g_too_much));
    } catch (const std::bad_alloc&) {
    }
  });
  ASSERT_EQ(notes.size(), 4U) << text(notes);
  EXPECT_EQ(fake::describe(notes[0]), "born malloc 33");
  EXPECT_EQ(notes[0].p, notes[1].p);
  EXPECT_EQ(notes[2].p, notes[3].p);
  if (own_stack) {
    ASSERT_EQ(sigaltstack(&before, nullptr), 0);
  }
  signal(SIGUSR1, SIG_DFL);
  expect_depth_is_right();
}

TEST(Nesting, ASignalHandlerOnTheSameStackIsRecorded) { signal_inside_new(false); }
TEST(Nesting, ASignalHandlerOnItsOwnStackIsRecorded) { signal_inside_new(true); }

}  // namespace
