// Agreement with the kernel about what changed unseen, and the set across forks and new sessions.
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "tests/unit/spans/replay.h"

namespace traceaf::emitter::spans {
namespace {

using wire::SpanSource;

constexpr size_t kPage = 4096;

uintptr_t address(const void* at) { return reinterpret_cast<uintptr_t>(at); }

class Reconcile : public test::SpansTest {
 protected:
  char* map(size_t pages, SpanSource source = SpanSource::kMmap) {
    void* at = mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    mapping_added(sink_, address(at), pages * kPage, source);
    return static_cast<char*>(at);
  }
};

TEST_F(Reconcile, removes_what_is_no_longer_mapped_and_nothing_else) {
  char* whole = map(10);
  char* gone = map(10, SpanSource::kAllocator);
  char* holed = map(10);
  munmap(gone, 10 * kPage);
  munmap(holed + 3 * kPage, 2 * kPage);
  reconcile(sink_);
  EXPECT_EQ(replay_.bytes_in(address(whole), address(whole) + 10 * kPage), 10 * kPage);
  EXPECT_EQ(replay_.bytes_in(address(gone), address(gone) + 10 * kPage), 0U);
  EXPECT_EQ(replay_.bytes_in(address(holed), address(holed) + 10 * kPage), 8 * kPage);
  EXPECT_EQ(replay_.holding(address(holed) + 3 * kPage), nullptr);
  const size_t events = replay_.events();
  reconcile(sink_);
  EXPECT_EQ(replay_.events(), events);
  munmap(whole, 10 * kPage);
  munmap(holed, 10 * kPage);
}

TEST_F(Reconcile, removes_spans_above_the_last_mapping_but_keeps_the_stack) {
  int on_stack = 0;
  object_born(cache_, sink_, address(&on_stack), 4);
  mapping_added(sink_, uintptr_t{0x7fffffff0000} + (uintptr_t{1} << 47), kPage, SpanSource::kMmap);
  EXPECT_EQ(replay_.spans().size(), 2U);
  reconcile(sink_);
  EXPECT_EQ(replay_.spans().size(), 1U);
  EXPECT_NE(replay_.holding(address(&on_stack)), nullptr);
}

// Two spans that are not mapped, with so many mappings between them that another thread can announce the second one
// anew after the first was found gone. The kernel's list speaks against both, but it is older than the announcement.
TEST_F(Reconcile, spares_spans_that_are_younger_than_its_reading) {
  constexpr uintptr_t kWindow = 0x7e9000000000;
  constexpr size_t kBetween = 8000;
  auto* between = reinterpret_cast<char*>(kWindow + 4 * kPage);
  ASSERT_EQ(mmap(between, kBetween * kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), between);
  for (size_t i = 0; i < kBetween; i += 2) ASSERT_EQ(mprotect(between + i * kPage, kPage, PROT_NONE), 0);
  struct Announcer {
    std::thread thread;
    std::atomic<bool> go{false};
    uintptr_t at = kWindow + (8 + kBetween) * kPage;
  } announcer;
  mapping_added(sink_, kWindow, kPage, SpanSource::kMmap);
  mapping_added(sink_, announcer.at, kPage, SpanSource::kMmap);
  Sink ignore{nullptr, [](void*, const Span&) {}, [](void*, uintptr_t) {}, nullptr};
  announcer.thread = std::thread([&] {
    while (!announcer.go) sched_yield();
    mapping_added(ignore, announcer.at, kPage, SpanSource::kMmapFile);
  });
  Sink sink{&announcer, [](void*, const Span&) {},
            [](void* c, uintptr_t base) {
              static_cast<Announcer*>(c)->go = true;
              usleep(20000);  // until it waits for the lock that this call is made under
            },
            nullptr};
  reconcile(sink);
  announcer.thread.join();
  test::Replay now;
  Sink list = now.sink();
  snapshot(list);
  ASSERT_EQ(now.listed().size(), 1U);
  EXPECT_EQ(now.listed()[0].base, announcer.at);
  EXPECT_EQ(now.listed()[0].source, SpanSource::kMmapFile);
  munmap(between, kBetween * kPage);
  replay_ = {};
  reset();
}

TEST_F(Reconcile, gives_up_while_the_lock_is_held) {
  struct Holder {
    std::atomic<bool> inside{false}, leave{false};
  } h;
  char* at = map(1);
  munmap(at, kPage);
  std::thread holder([&] {
    Sink slow{&h, [](void*, const Span&) {}, [](void*, uintptr_t) {},
              [](void* c, const Span&) {
                auto& self = *static_cast<Holder*>(c);
                self.inside = true;
                while (!self.leave) usleep(100);
              }};
    snapshot(slow);
  });
  while (!h.inside) usleep(100);
  const size_t events = replay_.events();
  reconcile(sink_);  // returns, although the holder waits for us
  EXPECT_EQ(replay_.events(), events);
  h.leave = true;
  holder.join();
  reconcile(sink_);
  EXPECT_EQ(replay_.spans().count(address(at)), 0U);
}

TEST_F(Reconcile, works_after_the_main_thread_has_ended) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    static test::Replay replay;
    static Sink sink = replay.sink();
    reset();
    constexpr uintptr_t kKept = 0x7e9000000000;
    constexpr uintptr_t kGone = 0x7e9000010000;  // never mapped
    if (mmap(reinterpret_cast<void*>(kKept), kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED) {
      _exit(2);
    }
    mapping_added(sink, kKept, kPage, SpanSource::kMmap);
    mapping_added(sink, kGone, kPage, SpanSource::kMmap);
    std::thread([] {
      usleep(100000);
      reconcile(sink);
      _exit(replay.holding(kKept) != nullptr && replay.holding(kGone) == nullptr ? 0 : 1);
    }).detach();
    syscall(SYS_exit, 0);  // this thread only
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(Reconcile, without_proc_what_is_told_is_kept_and_nothing_is_guessed) {
  constexpr int kNotAllowed = 77;
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", "/proc", "tmpfs", 0, nullptr) != 0) {
      _exit(kNotAllowed);
    }
    char* told = map(2);
    object_born(cache_, sink_, address(told), 1);
    const size_t events = replay_.events();
    void* unknown = mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    object_born(cache_, sink_, address(unknown), 1);
    munmap(told, kPage);
    reconcile(sink_);
    EXPECT_EQ(replay_.events(), events);
    break_changed(sink_);
    const uintptr_t end = (address(sbrk(0)) + kPage - 1) / kPage * kPage;
    if (sbrk(5 * kPage) == reinterpret_cast<void*>(-1)) _exit(2);
    break_changed(sink_);
    EXPECT_EQ(replay_.bytes_in(end, end + 5 * kPage), 5 * kPage);
    replay_.expect_consistent();
    _exit(HasFailure() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotAllowed) GTEST_SKIP() << "needs the right to mount";
  EXPECT_EQ(status, 0);
}

// ---- sessions and forks -------------------------------------------------------------------------------------------

TEST_F(Reconcile, reset_forgets_and_the_next_session_finds_everything_anew) {
  char* at = map(4);
  break_changed(sink_);
  const size_t brk = replay_.count(SpanSource::kBrk);
  reset();
  replay_ = {};
  sink_ = replay_.sink();
  replay_.expect_consistent();
  break_changed(sink_);
  object_born(cache_, sink_, address(at), 1);
  EXPECT_EQ(replay_.count(SpanSource::kBrk), brk);
  EXPECT_NE(replay_.holding(address(at)), nullptr);
  munmap(at, 4 * kPage);
  reconcile(sink_);
}

int in_child(void (*body)()) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST_F(Reconcile, fork_keeps_the_set_in_parent_and_child) {
  mapping_added(sink_, 0x7e9000000000, kPage, SpanSource::kMmap);
  before_fork();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    after_fork();
    replay_.expect_consistent();
    mapping_added(sink_, 0x7e9000002000, kPage, SpanSource::kMmap);
    mapping_removed(sink_, 0x7e9000000000, kPage);
    replay_.expect_consistent();
    _exit(HasFailure() ? 1 : 0);
  }
  after_fork_parent();
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  mapping_added(sink_, 0x7e9000004000, kPage, SpanSource::kMmap);
  EXPECT_EQ(replay_.spans().size(), 2U);
}

TEST_F(Reconcile, fork_in_the_middle_of_a_change_leaves_the_child_an_empty_usable_set) {
  static std::atomic<bool> inside{false};
  static std::atomic<bool> leave{false};
  std::thread holder([] {
    Sink slow{nullptr,
              [](void*, const Span&) {
                inside = true;
                while (!leave) usleep(100);
              },
              [](void*, uintptr_t) {}, nullptr};
    mapping_added(slow, 0x7e9000000000, kPage, SpanSource::kMmap);
  });
  while (!inside) usleep(100);
  EXPECT_EQ(in_child([] {
              after_fork();
              test::Replay replay;
              Sink sink = replay.sink();
              replay.expect_consistent();  // nothing there
              mapping_added(sink, 0x7e9000002000, kPage, SpanSource::kMmap);
              reconcile(sink);
              replay.expect_consistent();
              EXPECT_GT(replay.frees(), 0U);  // it was not really mapped
            }),
            0);
  leave = true;
  holder.join();
  Sink ignore{nullptr, [](void*, const Span&) {}, [](void*, uintptr_t) {}, nullptr};
  mapping_removed(ignore, 0x7e9000000000, kPage);
}

}  // namespace
}  // namespace traceaf::emitter::spans
