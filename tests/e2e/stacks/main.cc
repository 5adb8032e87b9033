// Hazard: every kind of stack at which a memo of the last walk, or a rule kept for an address, could give wrong frames
// (unwind-types-symbols 1.4 of the project's research).
// Right: the output of the plain run; under libtraceaf-check-capture.so no capture that differs from a plain walk or
// from libunwind. Needs an allocator that signal handlers may interrupt (libraries/signal_safe_heap.c).
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tests/e2e/stacks/stacks.h"

namespace stacks {
namespace {

std::atomic<unsigned> g_turn{0};
std::atomic<unsigned> g_on_stack{0}, g_on_signal_stack{0};

// One shot, set again by the handler: a handler that takes longer than the pause must not take all the time.
void start_timer(int which) {
  const itimerval once{{0, 0}, {0, 1000}};
  setitimer(which, &once, nullptr);
}

void on_stack(int number) {
  const int saved = errno;
  churn();
  ++g_on_stack;
  if (number == SIGALRM) start_timer(ITIMER_REAL);
  errno = saved;
}
void on_signal_stack(int number) {
  const int saved = errno;
  churn();
  ++g_on_signal_stack;
  if (number == SIGPROF) start_timer(ITIMER_PROF);
  errno = saved;
}

void handle(int number, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | flags;
  must(sigaction(number, &action, nullptr) == 0, "sigaction");
}

void start_signals() {
  constexpr size_t kBytes = 256 << 10;
  stack_t stack{};
  stack.ss_sp = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack.ss_size = kBytes;
  must(sigaltstack(&stack, nullptr) == 0, "sigaltstack");
  handle(SIGALRM, on_stack, 0);
  handle(SIGPROF, on_signal_stack, SA_ONSTACK);
  handle(SIGUSR1, on_stack, 0);
  handle(SIGUSR2, on_signal_stack, SA_ONSTACK);
  start_timer(ITIMER_REAL);
  start_timer(ITIMER_PROF);
}

}  // namespace

__attribute__((noinline)) void churn() {
  const unsigned turn = g_turn.fetch_add(1, std::memory_order_relaxed);
  auto* first = static_cast<volatile char*>(malloc(1 + turn % 200));
  auto* second = static_cast<volatile char*>(::operator new(1 + turn % 1000));
  first[0] = 1;
  second[0] = 2;
  void* volatile moved = realloc(const_cast<char*>(first), 100 + turn % 300);
  ::operator delete(const_cast<char*>(second));
  free(moved);
}

void must(bool condition, const char* what) {
  if (condition) return;
  dprintf(2, "stacks: %s: %s\n", what, strerror(errno));
  _exit(99);
}

Quiet::Quiet() {
  static_assert(sizeof(sigset_t) <= sizeof(before_));
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, reinterpret_cast<sigset_t*>(before_));
}
Quiet::~Quiet() { pthread_sigmask(SIG_SETMASK, reinterpret_cast<sigset_t*>(before_), nullptr); }

uint64_t raised_signals() {
  const unsigned before = g_on_stack + g_on_signal_stack;
  unusual_frames([] { raise(SIGUSR1); }, 3);
  unusual_frames([] { raise(SIGUSR2); }, 4);
  must(g_on_stack + g_on_signal_stack - before > 200, "signals arrived");
  return 1;
}

}  // namespace stacks

int main() {
  using namespace stacks;
  static const struct {
    const char* name;
    uint64_t (*run)();
  } kCases[] = {{"frames", frames},
                {"stale words", stale_words},
                {"raised signals", raised_signals},
                {"deep recursion", deep_recursion},
                {"contexts", contexts},
                {"fibers", fibers},
                {"hand-written coroutines", hand_written_coroutines},
#ifdef STACKS_SPLIT
                {"split stack", split_stack},
#endif
                {"code without tables", code_without_tables},
                {"generated code", generated_code},
                {"reloaded libraries", reloaded_libraries},
                {"threads", threads},
                {"children", children}};
  start_signals();
  for (const auto& one : kCases) {
    char line[100];
    const int bytes = snprintf(line, sizeof(line), "%s: %llu\n", one.name, static_cast<unsigned long long>(one.run()));
    must(write(1, line, static_cast<size_t>(bytes)) == bytes, "write");
  }
  must(g_on_stack > 10 && g_on_signal_stack > 10, "both kinds of handlers ran");
  return 0;
}
