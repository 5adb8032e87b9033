// New threads report themselves first and last; what that takes of the program's heap is nothing.
#include <gtest/gtest.h>
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

#include <cerrno>
#include <cstdint>

#include "emitter/region.h"
#include "notes.h"

namespace {

using fake::record;
using fake::text;
using fake::What;

void* allocate_once(void* argument) {
  *static_cast<uintptr_t*>(argument) = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  free(malloc(77));
  return argument;
}

int return_nine(void* argument) {
  free(malloc(78));
  return argument == nullptr ? 9 : 0;
}

// Notes of the new thread: those from its begin on, since the creator only waits.
std::string from_begin(const std::vector<fake::Note>& notes) {
  std::vector<fake::Note> of_thread;
  for (const auto& n : notes) {
    if (n.what == What::kThreadBegin || !of_thread.empty()) of_thread.push_back(n);
  }
  return text(of_thread);
}

TEST(Threads, ANewThreadReportsItsStackItsEventsAndItsEnd) {
  pthread_t thread;
  uintptr_t inside = 0;
  void* result = nullptr;
  const auto notes = record(
      [&] {
        pthread_create(&thread, nullptr, &allocate_once, &inside);
        pthread_join(thread, &result);
      },
      true);
  EXPECT_EQ(from_begin(notes), "thread begin; born malloc 77; dying; thread end");
  EXPECT_EQ(result, &inside);
  for (const auto& n : notes) {
    if (n.what != What::kThreadBegin) continue;
    EXPECT_LT(reinterpret_cast<uintptr_t>(n.p), inside);
    EXPECT_GT(reinterpret_cast<uintptr_t>(n.p) + n.size, inside);
  }
}

TEST(Threads, AThreadOfC11ReturnsItsResult) {
  thrd_t thread;
  int result = 0;
  const auto notes = record(
      [&] {
        thrd_create(&thread, &return_nine, nullptr);
        thrd_join(thread, &result);
      },
      true);
  EXPECT_EQ(from_begin(notes), "thread begin; born malloc 78; dying; thread end");
  EXPECT_EQ(result, 9);
}

void* exits(void*) { pthread_exit(reinterpret_cast<void*>(5)); }
void* waits(void*) {
  for (;;) {
    const timespec long_time{100, 0};
    nanosleep(&long_time, nullptr);
  }
}

TEST(Threads, ExitAndCancellationPassThrough) {
  pthread_t thread;
  void* result = nullptr;
  record(
      [&] {
        pthread_create(&thread, nullptr, &exits, nullptr);
        pthread_join(thread, &result);
      },
      true);
  EXPECT_EQ(result, reinterpret_cast<void*>(5));
  record(
      [&] {
        pthread_create(&thread, nullptr, &waits, nullptr);
        pthread_cancel(thread);
        pthread_join(thread, &result);
      },
      true);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

TEST(Threads, AFailedCreationHasThePlainResult) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{1} << 46);
  pthread_t thread;
  int plain = pthread_create(&thread, &attributes, &exits, nullptr);
  int recorded = 0;
  record([&] { recorded = pthread_create(&thread, &attributes, &exits, nullptr); });
  EXPECT_EQ(recorded, plain);
  EXPECT_NE(recorded, 0);
  pthread_attr_destroy(&attributes);
}

TEST(Threads, PacketsAreUsedAgain) {
  pthread_t thread;
  uint64_t before = 0;
  uint64_t after = 0;
  record([&] {
    for (int i = 0; i < 3000; ++i) {
      pthread_create(&thread, nullptr, &exits, nullptr);
      pthread_join(thread, nullptr);
      if (i == 0) before = traceaf::emitter::g_own_bytes.load();
    }
    after = traceaf::emitter::g_own_bytes.load();
  });
  EXPECT_GT(before, 0U);
  EXPECT_EQ(after, before);
}

TEST(Threads, NoTrampolineWhileOff) {
  pthread_t thread;
  uintptr_t inside = 0;
  fake::note(true);
  fake::set_gate(traceaf::emitter::kGateOff);
  pthread_create(&thread, nullptr, &allocate_once, &inside);
  pthread_join(thread, nullptr);
  const fake::Note* notes = nullptr;
  EXPECT_EQ(fake::notes_end(&notes), 0U);
}

}  // namespace
