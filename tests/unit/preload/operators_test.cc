// Every replaceable operator new and delete is one event, whatever it is built on.
#include <gtest/gtest.h>

#include <new>
#include <thread>

#include "notes.h"

// clang declares the sized forms only with -fsized-deallocation.
void operator delete(void* block, std::size_t size) noexcept;
void operator delete[](void* block, std::size_t size) noexcept;
void operator delete(void* block, std::size_t size, std::align_val_t align) noexcept;
void operator delete[](void* block, std::size_t size, std::align_val_t align) noexcept;

namespace {

using fake::record;
using fake::text;
using std::align_val_t;
using std::nothrow;

constexpr align_val_t kWide{64};

TEST(Operators, EachFormOfNewIsOneBirthUnderItsOwnName) {
  void* p[8] = {};
  const auto notes = record([&] {
    p[0] = ::operator new(21);
    p[1] = ::operator new[](22);
    p[2] = ::operator new(23, nothrow);
    p[3] = ::operator new[](24, nothrow);
    p[4] = ::operator new(25, kWide);
    p[5] = ::operator new[](26, kWide);
    p[6] = ::operator new(27, kWide, nothrow);
    p[7] = ::operator new[](28, kWide, nothrow);
  });
  EXPECT_EQ(text(notes),
            "born operator new 21; born operator new[] 22; born operator new(nothrow) 23; "
            "born operator new[](nothrow) 24; born operator new(align) 25 align 64; "
            "born operator new[](align) 26 align 64; born operator new(align, nothrow) 27 align 64; "
            "born operator new[](align, nothrow) 28 align 64");
  for (size_t i = 0; i < notes.size(); ++i) EXPECT_EQ(notes[i].p, p[i]) << i;
  for (int i = 0; i < 4; ++i) ::operator delete(p[i]);
  for (int i = 4; i < 8; ++i) ::operator delete(p[i], kWide);
}

TEST(Operators, EachFormOfDeleteIsOneDeath) {
  void* plain[6] = {};
  void* wide[6] = {};
  for (void*& p : plain) p = ::operator new(40);
  for (void*& p : wide) p = ::operator new(40, kWide);
  const auto notes = record([&] {
    ::operator delete(plain[0]);
    ::operator delete[](plain[1]);
    ::operator delete(plain[2], 40);
    ::operator delete[](plain[3], 40);
    ::operator delete(plain[4], nothrow);
    ::operator delete[](plain[5], nothrow);
    ::operator delete(wide[0], kWide);
    ::operator delete[](wide[1], kWide);
    ::operator delete(wide[2], 40, kWide);
    ::operator delete[](wide[3], 40, kWide);
    ::operator delete(wide[4], kWide, nothrow);
    ::operator delete[](wide[5], kWide, nothrow);
    ::operator delete(nullptr);
    ::operator delete[](nullptr, 3, kWide);
  });
  ASSERT_EQ(notes.size(), 12U) << text(notes);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(notes[i].p, plain[i]);
    EXPECT_EQ(notes[i + 6].p, wide[i]);
  }
}

TEST(Operators, ZeroBytesAreABlock) {
  void* p = nullptr;
  const auto notes = record([&] { p = ::operator new[](0); });
  EXPECT_EQ(text(notes), "born operator new[] 0");
  EXPECT_EQ(notes[0].p, p);
  ::operator delete[](p);
}

}  // namespace
