// mmap, munmap, mremap, brk and sbrk: successes are told in whole pages, failures leave everything as it was.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "notes.h"

namespace {

using fake::record;
using fake::text;

constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS;
constexpr size_t kPage = 4096;

TEST(Mapping, MapAndUnmapAreToldInPages) {
  void* p = nullptr;
  const auto notes = record([&] {
    p = mmap(nullptr, 5000, PROT_READ, kPrivate, -1, 0);
    munmap(p, 5000);
    p = mmap64(nullptr, kPage, PROT_NONE, kPrivate, -1, 0);
    munmap(p, kPage);
  });
  EXPECT_EQ(text(notes), "mapped 8192 source 4; unmapping 8192; mapped 4096 source 4; unmapping 4096");
}

TEST(Mapping, AFileIsToldAsOne) {
  const int fd = memfd_create("mapping_test", 0);
  ASSERT_EQ(ftruncate(fd, 4096), 0);
  const auto notes = record([&] {
    void* p = mmap(nullptr, kPage, PROT_READ, MAP_SHARED, fd, 0);
    munmap(p, kPage);
  });
  EXPECT_EQ(text(notes), "mapped 4096 source 5; unmapping 4096");
  close(fd);
}

TEST(Mapping, FailuresAreNothingOrAreTakenBack) {
  int errors[4] = {};
  char* page = static_cast<char*>(mmap(nullptr, kPage, PROT_READ, kPrivate, -1, 0));
  const auto notes = record([&] {
    errno = 0;
    if (mmap(nullptr, 0, PROT_READ, kPrivate, -1, 0) == MAP_FAILED) errors[0] = errno;
    errno = 0;
    if (munmap(page + 1, kPage) != 0) errors[1] = errno;  // not at a page
    errno = 0;
    if (munmap(page, 0) != 0) errors[2] = errno;
    errno = 0;
    if (munmap(reinterpret_cast<void*>(~uintptr_t{0} << 12), kPage) != 0) errors[3] = errno;
  });
  EXPECT_EQ(text(notes), "unmapping 4096; restored 4096");
  for (const int error : errors) EXPECT_EQ(error, EINVAL);
  munmap(page, kPage);
}

TEST(Mapping, RemapMovesTheOldMapping) {
  const auto notes = record([&] {
    void* p = mmap(nullptr, kPage, PROT_READ, kPrivate, -1, 0);
    p = mremap(p, kPage, 3 * kPage, MREMAP_MAYMOVE);
    munmap(p, 3 * kPage);
  });
  EXPECT_EQ(text(notes), "mapped 4096 source 4; unmapping 4096; mapped 12288 source 4; unmapping 12288");
}

TEST(Mapping, RemapThatFailsRestores) {
  char* two = static_cast<char*>(mmap(nullptr, 2 * kPage, PROT_READ, kPrivate, -1, 0));
  int error = 0;
  const auto notes = record([&] {
    errno = 0;
    if (mremap(two, kPage, 2 * kPage, 0) == MAP_FAILED) error = errno;
  });
  EXPECT_EQ(text(notes), "unmapping 4096; restored 4096");
  EXPECT_EQ(error, ENOMEM);
  munmap(two, 2 * kPage);
}

TEST(Mapping, RemapWithDontUnmapAndOfLengthZeroKeepsTheOld) {
  void* old = mmap(nullptr, kPage, PROT_READ, kPrivate, -1, 0);
  void* shared = mmap(nullptr, kPage, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  void* moved = nullptr;
  void* second = nullptr;
  const auto notes = record([&] {
    moved = mremap(old, kPage, kPage, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
    second = mremap(shared, 0, kPage, MREMAP_MAYMOVE);
  });
  ASSERT_NE(moved, MAP_FAILED);
  ASSERT_NE(second, MAP_FAILED);
  EXPECT_EQ(text(notes), "mapped 4096 source 4; mapped 4096 source 4");
  for (void* p : {old, shared, moved, second}) munmap(p, kPage);
}

TEST(Mapping, RemapToAFixedPlace) {
  void* place = mmap(nullptr, kPage, PROT_READ, kPrivate, -1, 0);
  void* old = mmap(nullptr, kPage, PROT_READ, kPrivate, -1, 0);
  void* moved = nullptr;
  const auto notes = record([&] { moved = mremap(old, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, place); });
  EXPECT_EQ(moved, place);
  EXPECT_EQ(text(notes), "unmapping 4096; mapped 4096 source 4");
  munmap(place, kPage);
}

TEST(Mapping, TheBreakIsToldWhenItMoves) {
  const auto notes = record([&] {
    void* before = sbrk(0);
    sbrk(static_cast<intptr_t>(kPage));
    brk(before);
    sbrk(intptr_t{1} << 60);  // fails
  });
  EXPECT_EQ(text(notes), "break; break");
}

}  // namespace
