// Every capture in code with unusual stacks, built by several compilers and options, equals libunwind's.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#include <thread>
#include <vector>

#include "tests/unit/unwind/oracle.h"
#include "tests/unit/unwind/subject.h"

namespace traceaf::test {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;  // delays signals, and follows at most 64 Ki calls
#else
constexpr bool kThreadSanitizer = false;
#endif

const char* const kSubjects[] = {TRACEAF_SUBJECTS};

class Subjects : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    stack_bounds();
    library_ = dlopen(GetParam(), RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
    subject_ = static_cast<const Subject*>(dlsym(library_, "subject"));
    ASSERT_NE(subject_, nullptr);
    take_tally();
  }

  static void expect_equal(uint64_t captures) {
    const Tally tally = take_tally();
    EXPECT_GE(tally.compared, captures);
    EXPECT_EQ(tally.different, 0u) << tally.first_difference;
    EXPECT_EQ(tally.no_cfi, 0u);
    EXPECT_GT(tally.frames, 5 * tally.compared);
  }

  void everything(Hook hook) const {
    subject_->recursion(hook, 20);
    subject_->random_alloca(hook, 20, 1);
    subject_->realigned(hook, 15, 2);
    subject_->large_frames(hook, 5);
    subject_->exceptions(hook, 6);
    subject_->after_longjmp(hook, 10);
    subject_->tail_calls(hook, 5);
    subject_->last_call_does_not_return(hook);
    subject_->callbacks(hook);
  }

  void* library_ = nullptr;
  const Subject* subject_ = nullptr;
};

TEST_P(Subjects, RecursionEqualsLibunwind) {
  subject_->recursion(compare_here, 100);
  expect_equal(200);
}

TEST_P(Subjects, AllocaOfRandomSizeEqualsLibunwind) {
  for (uint32_t seed = 0; seed < 10; ++seed) subject_->random_alloca(compare_here, 40, seed);
  expect_equal(800);
}

TEST_P(Subjects, RealignedFramesEqualLibunwind) {
  for (uint32_t seed = 0; seed < 10; ++seed) subject_->realigned(compare_here, 30, seed);
  expect_equal(1200);
}

TEST_P(Subjects, LargeFramesEqualLibunwind) {
  subject_->large_frames(compare_here, 20);
  expect_equal(40);
}

TEST_P(Subjects, FramesDuringExceptionsEqualLibunwind) {
  subject_->exceptions(compare_here, 15);
  expect_equal(30);
}

TEST_P(Subjects, FramesAfterLongjmpEqualLibunwind) {
  subject_->after_longjmp(compare_here, 30);
  expect_equal(30);
}

TEST_P(Subjects, TailCallsEqualLibunwind) {
  subject_->tail_calls(compare_here, 9);
  expect_equal(2);
}

TEST_P(Subjects, CallAsLastInstructionEqualsLibunwind) {
  subject_->last_call_does_not_return(compare_here);
  expect_equal(2);
}

TEST_P(Subjects, CallbacksThroughLibrariesEqualLibunwind) {
  subject_->callbacks(compare_here);
  expect_equal(10);
}

TEST_P(Subjects, ThreadsEqualLibunwind) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([this] { everything(compare_here); });
  for (auto& thread : threads) thread.join();
  expect_equal(400);
}

void raise_usr1() { raise(SIGUSR1); }
void on_signal(int) { compare_here(); }

TEST_P(Subjects, SignalHandlersOnTheSameStackEqualLibunwind) {
  struct sigaction action {
  }, before{};
  action.sa_handler = on_signal;
  sigaction(SIGUSR1, &action, &before);
  everything(raise_usr1);
  sigaction(SIGUSR1, &before, nullptr);
  const Tally tally = take_tally();
  EXPECT_GT(tally.compared, 100u);
  EXPECT_EQ(tally.interrupted, tally.compared);
  EXPECT_EQ(tally.no_cfi, 0u);
  EXPECT_EQ(tally.different, 0u) << tally.first_difference;
}

TEST_P(Subjects, SignalHandlersOnTheAlternateStackEqualLibunwind) {
  constexpr size_t kBytes = 256 << 10;
  stack_t alternate{}, none{};
  alternate.ss_sp = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  alternate.ss_size = kBytes;
  ASSERT_EQ(sigaltstack(&alternate, nullptr), 0);
  struct sigaction action {
  }, before{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, &before);
  everything(raise_usr1);
  sigaction(SIGUSR1, &before, nullptr);
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  munmap(alternate.ss_sp, kBytes);
  const Tally tally = take_tally();
  EXPECT_GT(tally.compared, 100u);
  EXPECT_EQ(tally.interrupted, tally.compared);
  EXPECT_EQ(tally.other_stack, tally.compared);
  EXPECT_EQ(tally.no_cfi, 0u);
  EXPECT_EQ(tally.different, 0u) << tally.first_difference;
}

// Prologues, epilogues, stubs of the linkage table: rules there differ from those at call sites.
TEST_P(Subjects, InterruptionAnywhereEqualsLibunwind) {
  if (kThreadSanitizer) GTEST_SKIP();
  struct sigaction action {
  }, before{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, &before);
  const itimerval often{{0, 500}, {0, 500}}, never{};
  compare_here();  // libunwind's first use allocates
  setitimer(ITIMER_REAL, &often, nullptr);
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
  uint64_t sum = 0;
  while (std::chrono::steady_clock::now() < until) sum += subject_->work(20);
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_NE(sum, 0u);
  const Tally tally = take_tally();
  EXPECT_GT(tally.interrupted, 50u);
  EXPECT_EQ(tally.no_cfi, 0u);
  EXPECT_EQ(tally.different, 0u) << tally.first_difference;
}

ucontext_t g_main, g_coroutine;
const Subject* g_in_coroutine;
void coroutine_body() {
  g_in_coroutine->random_alloca(compare_here, 10, 3);
  g_in_coroutine->realigned(compare_here, 10, 3);
  g_in_coroutine->exceptions(compare_here, 3);
  swapcontext(&g_coroutine, &g_main);
}

// Pages around the stack cannot be read: a walk that looked beyond it would crash.
TEST_P(Subjects, CoroutineStacksEqualLibunwindAndEndThere) {
  constexpr size_t kPage = 4096, kBytes = 64 * kPage;
  auto* room = static_cast<char*>(mmap(nullptr, kBytes + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(mprotect(room + kPage, kBytes, PROT_READ | PROT_WRITE), 0);
  getcontext(&g_coroutine);
  g_coroutine.uc_stack.ss_sp = room + kPage;
  g_coroutine.uc_stack.ss_size = kBytes;
  g_coroutine.uc_link = &g_main;
  g_in_coroutine = subject_;
  makecontext(&g_coroutine, coroutine_body, 0);
  swapcontext(&g_main, &g_coroutine);
  const Tally tally = take_tally();
  EXPECT_GT(tally.compared, 40u);
  EXPECT_EQ(tally.other_stack, tally.compared);
  EXPECT_EQ(tally.no_cfi, 0u);
  EXPECT_EQ(tally.different, 0u) << tally.first_difference;
  munmap(room, kBytes + 2 * kPage);
}

struct Deep {
  unsigned calls, capped, complete;
  size_t deepest;
} g_deep;

void capture_deep() {
  const auto start = emitter::unwind::start_of(__builtin_frame_address(0));
  const Stack cut = walk_from(start, stack_bounds(), 1000);
  g_deep.capped += cut.end == wire::NodeRoot::kDepthCap && cut.frames.size() == 1000 ? 1 : 0;
  if (++g_deep.calls % 5'000 != 0) return;
  const Stack whole = walk_from(start, stack_bounds(), 300'000);
  g_deep.complete += whole.end == wire::NodeRoot::kComplete ? 1 : 0;
  g_deep.deepest = std::max(g_deep.deepest, whole.frames.size());
}

TEST_P(Subjects, DeepRecursionIsCutAtTheCapAndCompleteWithoutIt) {
  if (kThreadSanitizer) GTEST_SKIP();
  g_deep = {};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{64} << 20);
  pthread_t thread;
  const auto body = [](void* subject) -> void* {
    unsigned calls = 0;
    static thread_local unsigned* counter = nullptr;
    counter = &calls;
    // The hook runs twice a level: every tenth call captures.
    static_cast<const Subject*>(subject)->recursion(
        [] {
          if (++*counter % 10 == 0) capture_deep();
        },
        100'000);
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, const_cast<Subject*>(subject_)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(g_deep.calls, 20'000u);
  EXPECT_GT(g_deep.capped, 19'700u);
  EXPECT_EQ(g_deep.complete, 4u);
  EXPECT_GE(g_deep.deepest, 99'000u);
}

std::string name_of(const testing::TestParamInfo<const char*>& info) {
  const std::string path = info.param;
  const size_t at = path.rfind("subject_") + 8;
  return path.substr(at, path.find('.', at) - at);
}
INSTANTIATE_TEST_SUITE_P(Builds, Subjects, testing::ValuesIn(kSubjects), name_of);

}  // namespace
}  // namespace traceaf::test
