// Hazard: a signal handler allocates while it interrupts the recorder or an allocation, on the thread's stack and on
// one of its own (O27 of the bug log). Plain malloc may not be interrupted so; here the program allows signals only
// where its own code runs between the calls and in a handler's handler, and maps memory, which is safe everywhere.
// Right: as plain; what the recorder could not take is counted.
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "expect.h"

static volatile sig_atomic_t arrived;

static void handler(int number) {
  void* p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p != MAP_FAILED) munmap(p, 4096);
  arrived += 1;
  (void)number;
}

// Never inside malloc of the program: it is raised there by hand.
static void allocating_handler(int number) {
  free(malloc(60));
  (void)number;
}

int main(void) {
  static char stack[65536];
  const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
  MUST(sigaltstack(&own, NULL) == 0);
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};
  MUST(sigaction(SIGPROF, &action, NULL) == 0);
  action.sa_handler = allocating_handler;
  MUST(sigaction(SIGUSR1, &action, NULL) == 0);
  const struct itimerval often = {{0, 1000}, {0, 1000}};
  MUST(setitimer(ITIMER_PROF, &often, NULL) == 0);
  const int kRounds = 1000;
  for (int i = 0; i < kRounds || arrived < 20; ++i) {
    for (int k = 0; k < 1000; ++k) free(malloc(16 + (size_t)k));
    MUST(raise(SIGUSR1) == 0);
    MUST(i < 1000000);
  }
  const struct itimerval never = {{0, 0}, {0, 0}};
  MUST(setitimer(ITIMER_PROF, &never, NULL) == 0);
  expect("allocations", ">=", 1001 * kRounds);
  expect("live_blocks", "==", 0);
  say("done\n");
  return 0;
}
