// Lets a program say what its trace must show: a line for each number in the file $E2E_EXPECT_FILE.PID. Nothing here
// allocates, so that telling the numbers does not change them.
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Where the lines go: `image` >= 0 names the n-th program image of this process (from 0), -1 the only one.
static inline int expect_open(int image) {
  const char* base = getenv("E2E_EXPECT_FILE");
  if (base == NULL) return -1;
  char path[4096];
  if (image < 0) {
    snprintf(path, sizeof path, "%s.%d", base, (int)getpid());
  } else {
    snprintf(path, sizeof path, "%s.%d.%d", base, (int)getpid(), image);
  }
  return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

// A condition on the summary: expect("allocations", "==", 1000). Returns without a word when nobody asked.
static inline void expect_image(int image, const char* key, const char* op, long long value) {
  const int fd = expect_open(image);
  if (fd < 0) return;
  char line[128];
  const int n = snprintf(line, sizeof line, "%s%s%lld\n", key, op, value);
  if (write(fd, line, (size_t)n) != n) abort();
  close(fd);
}

static inline void expect(const char* key, const char* op, long long value) { expect_image(-1, key, op, value); }

// Bytes of the calling thread's dynamic thread vector. ld.so callocs one for each thread but the first, through the
// interposed calloc, and keeps it with the thread's cached stack: a block that the trace rightly shows.
static inline long long dtv_bytes(void) {
  const size_t* dtv;
  __asm__("mov %%fs:8, %0" : "=r"(dtv));
  return (long long)((dtv[-2] + 2) * 2 * sizeof(void*));
}

// Ends the test where a call that must succeed did not.
#define MUST(condition)                                       \
  do {                                                        \
    if (!(condition)) {                                       \
      static const char text_[] = "failed: " #condition "\n"; \
      write(2, text_, sizeof text_ - 1);                      \
      _exit(99);                                              \
    }                                                         \
  } while (0)

static inline void say(const char* text) { MUST(write(1, text, strlen(text)) == (ssize_t)strlen(text)); }
