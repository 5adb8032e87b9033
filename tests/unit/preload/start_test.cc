// What the start finds: arguments, the next allocator, symbols; and memory for calls before it.
#include <gtest/gtest.h>
#include <link.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "notes.h"
#include "preload/bootstrap.h"
#include "preload/elf_symbols.h"
#include "preload/next.h"
#include "preload/substitutes.h"

namespace {

using fake::record;
using fake::text;
namespace bootstrap = traceaf::preload::bootstrap;
namespace substitute = traceaf::preload::substitute;

TEST(Start, HappensOnceWithTheArgumentsOfTheProcess) {
  EXPECT_EQ(fake::init_calls(), 1);
  ASSERT_GE(fake::init_argc(), 1);
  EXPECT_NE(strstr(fake::init_argv()[0], "unit_preload"), nullptr);
  EXPECT_EQ(fake::init_argv()[fake::init_argc()], nullptr);
  EXPECT_EQ(fake::init_envp(), fake::init_argv() + fake::init_argc() + 1);
}

TEST(Start, TheNextAllocatorIsLibcs) {
  const auto& next = fake::next_allocator_info();
  ASSERT_NE(next.object_path, nullptr);
  EXPECT_NE(strstr(next.object_path, "libc.so.6"), nullptr) << next.object_path;
  EXPECT_NE(next.malloc_address, reinterpret_cast<const void*>(&malloc));
  EXPECT_EQ(next.mallctl, nullptr);
  ASSERT_NE(next.usable_size, nullptr);
}

const link_map* object_named(const char* name) {
  for (const link_map* o = _r_debug.r_map; o != nullptr; o = o->l_next) {
    if (strstr(o->l_name, name) != nullptr) return o;
  }
  return nullptr;
}

TEST(Symbols, TheDefaultVersionIsFound) {
  const link_map* libc = object_named("libc.so.6");
  ASSERT_NE(libc, nullptr);
  EXPECT_EQ(traceaf::preload::find_symbol(libc, "getpid"), reinterpret_cast<void*>(&getpid));
  // An indirect function is given as what it resolves to.
  auto* length = reinterpret_cast<size_t (*)(const char*)>(traceaf::preload::find_symbol(libc, "strlen"));
  ASSERT_NE(length, nullptr);
  EXPECT_EQ(length("twelve chars"), 12U);
  EXPECT_EQ(traceaf::preload::find_symbol(libc, "no_such_function_anywhere"), nullptr);
  EXPECT_EQ(traceaf::preload::find_symbol(libc, "cfree"), nullptr);  // only an old version of it
}

TEST(Symbols, TheVdsoIsReadToo) {
  const link_map* vdso = object_named("linux-vdso");
  if (vdso == nullptr) GTEST_SKIP() << "this kernel has no vdso";
  EXPECT_NE(traceaf::preload::find_symbol(vdso, "clock_gettime"), nullptr);
  EXPECT_EQ(traceaf::preload::find_symbol(vdso, "malloc"), nullptr);
}

TEST(Substitutes, MakeWhatAnAllocatorLacks) {
  void* p = substitute::pvalloc(1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 4096, 0U);
  EXPECT_GE(malloc_usable_size(p), 4096U);
  substitute::free_sized(p, 1);
  errno = 0;
  EXPECT_EQ(substitute::pvalloc(SIZE_MAX), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  errno = 0;
  EXPECT_EQ(substitute::reallocarray(nullptr, SIZE_MAX / 2, 3), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  p = substitute::reallocarray(nullptr, 3, 5);
  ASSERT_NE(p, nullptr);
  substitute::free_aligned_sized(p, 8, 15);
  void* kept = p;
  EXPECT_EQ(substitute::posix_memalign_by_memalign(&p, 24, 8), EINVAL);
  EXPECT_EQ(p, kept);
  errno = 77;
  EXPECT_EQ(substitute::posix_memalign_by_memalign(&p, 64, SIZE_MAX / 2), ENOMEM);
  EXPECT_EQ(errno, 77);
  ASSERT_EQ(substitute::posix_memalign_by_memalign(&p, 64, 8), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0U);
  free(p);
  p = substitute::memalign_by_posix_memalign(2, 8);
  ASSERT_NE(p, nullptr);
  free(p);
}

TEST(Bootstrap, BlocksAreZeroedAlignedAndKnown) {
  const uint64_t before = bootstrap::served();
  auto* p = static_cast<char*>(bootstrap::calloc(3, 100));
  ASSERT_NE(p, nullptr);
  EXPECT_TRUE(bootstrap::owns(p));
  EXPECT_EQ(bootstrap::size_of(p), 300U);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 16, 0U);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(p[i], 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bootstrap::memalign(1024, 8)) % 1024, 0U);
  EXPECT_EQ(bootstrap::served(), before + 2);
  int local = 0;
  EXPECT_FALSE(bootstrap::owns(&local));
  EXPECT_FALSE(bootstrap::owns(nullptr));
}

TEST(Bootstrap, EveryFunctionThatTakesABlockKnowsThem) {
  for (const bool on : {false, true}) {
    auto* p = static_cast<char*>(bootstrap::malloc(20));
    memcpy(p, "nineteen characters", 20);
    void* grown = nullptr;
    size_t usable = 0;
    fake::note();
    if (!on) fake::set_gate(traceaf::emitter::kGateOff);
    usable = malloc_usable_size(p);
    grown = realloc(p, 5000);
    free(p);
    free(bootstrap::malloc(1));
    ::operator delete(bootstrap::malloc(1));
    ::operator delete[](bootstrap::malloc(1));
    const fake::Note* notes = nullptr;
    const size_t n = fake::notes_end(&notes);
    EXPECT_EQ(text({notes, notes + n}), on ? "born realloc(NULL) 5000" : "");
    EXPECT_EQ(usable, 20U);
    EXPECT_FALSE(bootstrap::owns(grown));
    EXPECT_STREQ(static_cast<char*>(grown), "nineteen characters");
    free(grown);
  }
}

TEST(Bootstrap, ManyAndLargeBlocksAreMappedAlone) {
  char* large = static_cast<char*>(bootstrap::malloc(1 << 20));
  ASSERT_NE(large, nullptr);
  memset(large, 1, 1 << 20);
  EXPECT_TRUE(bootstrap::owns(large));
  EXPECT_TRUE(bootstrap::owns(large + (1 << 20) - 1));
  free(large);
  EXPECT_EQ(large[5], 1);  // ignored
  errno = 0;
  EXPECT_EQ(bootstrap::malloc(SIZE_MAX), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

TEST(Bootstrap, CellsAreUsedAgain) {
  void* cells[bootstrap::kCells + 1] = {};
  for (size_t i = 0; i < bootstrap::kCells; ++i) ASSERT_NE(cells[i] = bootstrap::cell(10), nullptr);
  EXPECT_EQ(bootstrap::cell(10), nullptr);
  EXPECT_EQ(bootstrap::cell(bootstrap::kCellBytes + 1), nullptr);
  free(cells[17]);
  EXPECT_EQ(bootstrap::cell(10), cells[17]);
  for (size_t i = 0; i < bootstrap::kCells; ++i) free(cells[i]);
}

}  // namespace
