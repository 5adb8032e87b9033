// The allocation family of C: each entry point one event, values and errno as the next allocator gives them.
#include <gtest/gtest.h>
#include <malloc.h>
#include <stdlib.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "notes.h"

extern "C" void free_sized(void* p, size_t size);
extern "C" void free_aligned_sized(void* p, size_t align, size_t size);

namespace {

using fake::record;
using fake::text;

volatile size_t g_huge = PTRDIFF_MAX;

TEST(Allocation, EachEntryPointIsOneBirthUnderItsOwnName) {
  void* p[10] = {};
  const auto notes = record([&] {
    p[0] = malloc(24);
    p[1] = calloc(3, 7);
    p[2] = realloc(nullptr, 30);
    p[3] = reallocarray(nullptr, 4, 8);
    EXPECT_EQ(posix_memalign(&p[4], 64, 33), 0);
    p[5] = aligned_alloc(128, 256);
    p[6] = memalign(32, 35);
    p[7] = valloc(36);
    p[8] = pvalloc(37);
    p[9] = malloc(0);
  });
  EXPECT_EQ(text(notes),
            "born malloc 24; born calloc 21; born realloc(NULL) 30; born reallocarray(NULL) 32; "
            "born posix_memalign 33 align 64; born aligned_alloc 256 align 128; born memalign 35 align 32; "
            "born valloc 36 align 4096; born pvalloc 37 align 4096; born malloc 0");
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(notes[i].p, p[i]) << i;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p[5]) % 128, 0U);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p[7]) % 4096, 0U);
  for (int i = 0; i < 21; ++i) EXPECT_EQ(static_cast<char*>(p[1])[i], 0);
  for (void* block : p) free(block);
}

TEST(Allocation, EachWayToFreeIsOneDeathBeforeIt) {
  void* p[3] = {malloc(10), malloc(20), aligned_alloc(64, 64)};
  const auto notes = record([&] {
    free(p[0]);
    free_sized(p[1], 20);
    free_aligned_sized(p[2], 64, 64);
    free(nullptr);
    free_sized(nullptr, 0);
    free_aligned_sized(nullptr, 8, 0);
  });
  ASSERT_EQ(text(notes), "dying; dying; dying");
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(notes[i].p, p[i]);
}

TEST(Allocation, ReallocIsAMoveWithBeginAndEnd) {
  void* a = malloc(10);
  void* b = malloc(10);
  void* a2 = nullptr;
  void* b2 = nullptr;
  const auto notes = record([&] {
    a2 = realloc(a, 5000);
    b2 = reallocarray(b, 6, 100);
  });
  ASSERT_EQ(text(notes), "move; moved realloc 5000; move; moved reallocarray 600");
  EXPECT_EQ(notes[1].old, a);
  EXPECT_EQ(notes[1].p, a2);
  EXPECT_EQ(notes[3].old, b);
  EXPECT_EQ(notes[3].p, b2);
  free(a2);
  free(b2);
}

TEST(Allocation, ReallocToNothingIsADeath) {
  void* a = malloc(10);
  void* b = malloc(10);
  const auto notes = record([&] {
    EXPECT_EQ(realloc(a, 0), nullptr);
    EXPECT_EQ(reallocarray(b, 0, 8), nullptr);
  });
  EXPECT_EQ(text(notes), "move; freed; move; freed");
}

TEST(Allocation, FailuresAreNoEventsAndLeaveTheBlock) {
  char* volatile kept = static_cast<char*>(malloc(10));
  memcpy(kept, "contents", 9);
  int errors[8] = {};
  void* out = reinterpret_cast<void*>(7);
  const auto notes = record([&] {
    auto failing = [&, i = 0](void* p) mutable {
      if (p == nullptr) errors[i] = errno;
      ++i;
      errno = 0;
    };
    errno = 0;
    failing(malloc(g_huge + 1));
    failing(calloc(g_huge, 4));
    failing(realloc(kept, g_huge + 1));
    failing(reallocarray(kept, g_huge, 8));
    failing(aligned_alloc(64, g_huge));
    failing(reallocarray(nullptr, g_huge, 8));
    failing(pvalloc(g_huge * 2 + 1));
    errors[7] = posix_memalign(&out, 24, 8);
  });
  EXPECT_EQ(text(notes), "move; failed; move; failed");
  for (int i = 0; i < 7; ++i) EXPECT_EQ(errors[i], ENOMEM) << i;
  EXPECT_EQ(errors[7], EINVAL);
  EXPECT_EQ(out, reinterpret_cast<void*>(7));
  EXPECT_STREQ(kept, "contents");
  free(kept);
}

TEST(Allocation, ErrnoIsKeptAcrossEverySuccess) {
  int wrong = 0;
  const auto check = [&](int line) {
    if (errno != 77) wrong = line;
    errno = 77;
  };
  record([&] {
    errno = 77;
    void* p = malloc(10);
    check(1);
    p = realloc(p, 1 << 20);
    check(2);
    free(p);
    check(3);
    p = calloc(1 << 20, 2);
    check(4);
    free_sized(p, 1 << 21);
    check(5);
    (void)posix_memalign(&p, 64, 100);
    check(6);
    p = reallocarray(p, 3, 5);
    check(7);
    p = realloc(p, 0);
    check(8);
    free_aligned_sized(aligned_alloc(64, 64), 64, 64);
    check(9);
    free(pvalloc(1));
    check(10);
    ::operator delete(::operator new(10));
    check(11);
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Allocation, TheReturnAddressIsTheCallers) {
  struct Caller {
    [[gnu::noinline]] static void* make() {
      void* p = malloc(11);
      asm volatile("" ::: "memory");
      return p;
    }
  };
  void* p = nullptr;
  const auto notes = record([&] { p = Caller::make(); });
  ASSERT_EQ(notes.size(), 1U);
  const auto start = reinterpret_cast<uintptr_t>(&Caller::make);
  EXPECT_GT(notes[0].return_address, start);
  EXPECT_LT(notes[0].return_address, start + 64);
  free(p);
}

TEST(Allocation, NothingIsReportedWhileTheGateIsOff) {
  fake::note();
  fake::set_gate(traceaf::emitter::kGateOff);
  void* p = realloc(malloc(10), 20);
  free(p);
  ::operator delete(::operator new(5));
  const fake::Note* notes = nullptr;
  EXPECT_EQ(fake::notes_end(&notes), 0U);
}

TEST(Allocation, UsableSizeIsTheAllocators) {
  void* p = malloc(1000);
  const size_t off = malloc_usable_size(p);
  size_t on = 0;
  record([&] { on = malloc_usable_size(p); });
  EXPECT_EQ(on, off);
  EXPECT_GE(on, 1000U);
  free(p);
}

}  // namespace
