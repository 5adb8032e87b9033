// The ends of a process image and its children, each in a forked child whose notes go to a shared page.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "notes.h"

extern "C" void helper_allocates(int);
extern "C" void helper_news(int);
extern "C" void helper_sets_variable(int);

namespace {

constexpr uint32_t kRoom = 20000;

struct Shared {
  uint32_t count;
  fake::Note notes[kRoom];
};

struct Outcome {
  int status;  // as from waitpid
  std::vector<fake::Note> notes;
};

// Runs `body` in a child. The notes begin behind the fork's own.
template <typename Body>
Outcome in_child(Body body) {
  auto* shared =
      static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t pid = fork();
  if (pid == 0) {
    fake::share(shared->notes, &shared->count, kRoom);
    fake::set_gate(traceaf::emitter::kGateOn);
    body();
    fake::share(nullptr, nullptr, 0);
    _exit(99);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  Outcome outcome{status, {shared->notes, shared->notes + (shared->count < kRoom ? shared->count : kRoom)}};
  munmap(shared, sizeof(Shared));
  return outcome;
}

constexpr int kFast = static_cast<int>(traceaf::wire::EndReason::kFastExit);
constexpr int kExit = static_cast<int>(traceaf::wire::EndReason::kExit);
constexpr int kExec = static_cast<int>(traceaf::wire::EndReason::kExec);

std::string ending(int reason, int status, bool last) {
  return fmt::format("ending {} status {} last {}", reason, status, last ? 1 : 0);
}

TEST(Process, FastExitsEndTheTraceAndKeepTheStatus) {
  Outcome o = in_child([] { _exit(4); });
  EXPECT_EQ(WEXITSTATUS(o.status), 4);
  EXPECT_EQ(fake::text(o.notes), ending(kFast, 4, true));
  o = in_child([] { _Exit(5); });
  EXPECT_EQ(WEXITSTATUS(o.status), 5);
  EXPECT_EQ(fake::text(o.notes), ending(kFast, 5, true));
}

void allocate_late() { free(malloc(91)); }

TEST(Process, QuickExitRunsTheHandlersFirst) {
  const Outcome o = in_child([] {
    at_quick_exit(&allocate_late);
    quick_exit(6);
  });
  EXPECT_EQ(WEXITSTATUS(o.status), 6);
  EXPECT_EQ(fake::text(o.notes), "born malloc 91; dying; " + ending(kFast, 6, true));
}

TEST(Process, ExitEndsTheTraceLastWithItsStatus) {
  const Outcome o = in_child([] {
    atexit(&allocate_late);
    exit(7);
  });
  EXPECT_EQ(WEXITSTATUS(o.status), 7);
  ASSERT_FALSE(o.notes.empty());
  EXPECT_EQ(fake::describe(o.notes.back()), ending(kExit, 7, true));
  EXPECT_NE(fake::text(o.notes).find("born malloc 91; dying"), std::string::npos);
}

TEST(Process, AbortIsLeftAlone) {
  const Outcome o = in_child([] {
    signal(SIGABRT, SIG_DFL);
    abort();
  });
  EXPECT_EQ(WTERMSIG(o.status), SIGABRT);
  EXPECT_EQ(fake::text(o.notes), "");
}

TEST(Process, EveryExecWritesFirstAndGoesOnWhenItFails) {
  static char* const argv[] = {const_cast<char*>("x"), nullptr};
  static char* const envp[] = {nullptr};
  const Outcome o = in_child([] {
    execve("/nonexistent", argv, envp);
    execv("/nonexistent", argv);
    execvp("/nonexistent", argv);
    execvpe("/nonexistent", argv, envp);
    execl("/nonexistent", "x", "y", static_cast<char*>(nullptr));
    execlp("/nonexistent", "x", static_cast<char*>(nullptr));
    execle("/nonexistent", "x", static_cast<char*>(nullptr), envp);
    fexecve(-1, argv, envp);
    execveat(AT_FDCWD, "/nonexistent", argv, envp, 0);
    free(malloc(92));
  });
  std::string expected;
  for (int i = 0; i < 9; ++i) expected += ending(kExec, 0, false) + "; ";
  EXPECT_EQ(fake::text(o.notes), expected + "born malloc 92; dying");
}

TEST(Process, ArgumentsAndEnvironmentOfTheListFormsArrive) {
  static char* const envp[] = {const_cast<char*>("GIVEN=41"), nullptr};
  EXPECT_EQ(WEXITSTATUS(in_child([] {
                          execl("/bin/sh", "sh", "-c", "exit $(($# + $1))", "zero", "3", "x",
                                static_cast<char*>(nullptr));
                        }).status),
            5);
  EXPECT_EQ(WEXITSTATUS(in_child([] {
                          execlp("sh", "sh", "-c", "exit $#", "zero", "1", "2", "3", static_cast<char*>(nullptr));
                        }).status),
            3);
  EXPECT_EQ(WEXITSTATUS(in_child([] {
                          execle("/bin/sh", "sh", "-c", "exit $GIVEN", static_cast<char*>(nullptr), envp);
                        }).status),
            41);
}

TEST(Process, AVforkChildDoesNothingOfOurs) {
  const Outcome o = in_child([] {
    const pid_t pid = vfork();
    if (pid == 0) {
      setenv("TRACEALLOCFREE", "0", 1);
      execl("/nonexistent", "x", static_cast<char*>(nullptr));
      _exit(1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    _exit(WEXITSTATUS(status) + 10);
  });
  EXPECT_EQ(WEXITSTATUS(o.status), 11);
  // The child's allocations are the parent's heap and so its thread's events; nothing else of the child is seen.
  std::vector<fake::Note> rest;
  for (const auto& n : o.notes) {
    if (n.what > fake::What::kMoveFreed) rest.push_back(n);
  }
  EXPECT_EQ(fake::text(rest), ending(kFast, 11, true));
}

TEST(Process, ForkCallsTheHandlers) {
  const Outcome o = in_child([] {
    const pid_t pid = fork();
    if (pid == 0) {
      raise(SIGKILL);
    }
    waitpid(pid, nullptr, 0);
    _exit(0);
  });
  const std::string text = fake::text(o.notes);
  EXPECT_EQ(text.find("fork prepare"), 0U) << text;
  EXPECT_NE(text.find("fork parent"), std::string::npos);
  EXPECT_NE(text.find("fork child"), std::string::npos);
}

TEST(Process, TheFlusherIsParkedAroundUnshareAndSetns) {
  const auto notes = fake::record([] {
    unshare(0);
    setns(-1, 0);
  });
  EXPECT_EQ(fake::text(notes), "park; unpark; park; unpark");
}

TEST(Process, DlcloseDropsCachedFactsBeforeAndAfter) {
  void* handle = dlopen("libm.so.6", RTLD_NOW);
  ASSERT_NE(handle, nullptr);
  const auto notes = fake::record([&] { dlclose(handle); });
  ASSERT_GE(notes.size(), 2U);
  EXPECT_EQ(notes.front().what, fake::What::kModulesChanging);
  EXPECT_EQ(notes.back().what, fake::What::kModulesChanged);
}

// In this program its own code stands for the recorder's (one object), the helper library for everything else.
void enable_guard() {
  signal(SIGABRT, SIG_DFL);
  fake::set_guard(true);
  setenv("TRACEALLOCFREE", "1", 1);  // the option is taken over from the recorder
  fake::set_inside(true);
}

TEST(Guard, AbortsWhenTheRecorderAllocates) {
  Outcome o = in_child([] {
    enable_guard();
    free(malloc(5));
  });
  EXPECT_TRUE(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGABRT);
  o = in_child([] {
    enable_guard();
    helper_allocates(0);  // as a function of libc that the recorder called would
  });
  EXPECT_TRUE(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGABRT);
}

TEST(Guard, LeavesSignalHandlersAlone) {
  const Outcome o = in_child([] {
    signal(SIGUSR1, &helper_allocates);
    enable_guard();
    raise(SIGUSR1);
    _exit(3);
  });
  EXPECT_EQ(WEXITSTATUS(o.status), 3);
}

// The inner call of two: malloc behind operator new, realloc behind setenv. What passes it on is our wrapper.
TEST(Guard, TakesNoWrapperForTheRecorder) {
  for (void (*handler)(int) : {&helper_news, &helper_sets_variable}) {
    Outcome o = in_child([&] {
      signal(SIGUSR1, handler);
      enable_guard();
      raise(SIGUSR1);
      _exit(3);
    });
    EXPECT_TRUE(WIFEXITED(o.status) && WEXITSTATUS(o.status) == 3) << o.status;
    o = in_child([&] {
      enable_guard();
      handler(0);
    });
    EXPECT_TRUE(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGABRT) << o.status;
  }
}

TEST(Guard, LeavesOrdinaryCallsAlone) {
  const Outcome o = in_child([] {
    enable_guard();
    fake::set_inside(false);
    free(malloc(5));
    helper_allocates(0);
    _exit(3);
  });
  EXPECT_EQ(WEXITSTATUS(o.status), 3);
}

}  // namespace
