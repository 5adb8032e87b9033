// Hazard: a program that ends otherwise than by return from main, so that what was recorded last is lost (O14 of the
// bug log).
// Right: the same status or signal, and 1000 births in the trace each time.
// Argument: how to end.
#include <pthread.h>
#include <signal.h>

#include "expect.h"

static void allocate(int blocks) {
  for (int i = 0; i < blocks; ++i) MUST(malloc(32) != NULL);
}

static void late(void) {
  allocate(500);
  _exit(7);
}

static void* ends_process(void* unused) {
  exit(8);
  return unused;
}

static void* outlives_main(void* unused) {
  usleep(20000);
  allocate(500);
  return unused;
}

int main(int argc, char** argv) {
  MUST(argc == 2);
  const char* how = argv[1];
  const int second_half = strcmp(how, "handler") == 0 || strcmp(how, "main_thread_first") == 0;
  allocate(second_half ? 500 : 1000);
  // A further thread costs one calloc of ld.so; atexit has room for 32 handlers without allocating.
  const int thread = strcmp(how, "second_thread") == 0 || strcmp(how, "main_thread_first") == 0;
  // pthread_exit loads libgcc_s, which allocates.
  const int exactly = strcmp(how, "main_thread_first") != 0;
  expect("allocations", exactly ? "==" : ">=", 1000 + thread);
  if (exactly) expect("frees", "==", 0);
  pthread_t other;
  if (strcmp(how, "return") == 0) return 3;
  if (strcmp(how, "_exit") == 0) _exit(4);
  if (strcmp(how, "_Exit") == 0) _Exit(5);
  if (strcmp(how, "quick_exit") == 0) quick_exit(6);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "sigterm") == 0) raise(SIGTERM);
  if (strcmp(how, "sigkill") == 0) raise(SIGKILL);
  if (strcmp(how, "handler") == 0) {
    atexit(late);
    exit(0);
  }
  if (strcmp(how, "second_thread") == 0) {
    MUST(pthread_create(&other, NULL, ends_process, NULL) == 0);
    pthread_join(other, NULL);
  }
  if (strcmp(how, "main_thread_first") == 0) {
    MUST(pthread_create(&other, NULL, outlives_main, NULL) == 0);
    pthread_exit(NULL);
  }
  if (strcmp(how, "execve") == 0) {
    char* const arguments[] = {"true", NULL};
    char* const environment[] = {NULL};
    execve("/bin/true", arguments, environment);
  }
  return 99;
}
