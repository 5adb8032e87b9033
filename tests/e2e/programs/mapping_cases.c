// Hazard: mmap books that drift: page rounding, failing calls, MREMAP_FIXED, DONTUNMAP, old length 0, holes and
// overlaps (O46, O47 of the bug log). Right: results and errno as plain, the trace valid, no object lost.
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "expect.h"

enum { kPage = 4096 };

static char* pages(int n) {
  char* p = mmap(NULL, (size_t)n * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(p != MAP_FAILED);
  return p;
}

int main(void) {
  for (int round = 0; round < 50; ++round) {
    char* reserve = mmap(NULL, 200 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    MUST(reserve != MAP_FAILED);
    MUST(mmap(reserve + 50 * kPage, 100 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
              0) == reserve + 50 * kPage);
    reserve[60 * kPage] = 1;
    for (int i = 0; i < 200; i += 2) MUST(munmap(reserve + i * kPage, 1) == 0);
    MUST(munmap(reserve, 200 * kPage) == 0);

    errno = 0;
    MUST(munmap(reserve + 1, kPage) == -1 && errno == EINVAL);
    MUST(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);

    char* p = mremap(pages(1), kPage, 3 * kPage - 100, MREMAP_MAYMOVE);
    MUST(p != MAP_FAILED);
    p[2 * kPage] = 1;
    MUST(mremap(p, 3 * kPage, kPage, 0) == p);
    char* place = pages(2);
    MUST(mremap(p, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place);
    char* away = mremap(place, kPage, kPage, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    MUST(away != MAP_FAILED && away != place);
    MUST(munmap(away, kPage) == 0 && munmap(place, 2 * kPage) == 0);
    errno = 0;
    MUST(mremap((char*)kPage, kPage, kPage, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);

    char* shared = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char* second = mremap(shared, 0, kPage, MREMAP_MAYMOVE);
    MUST(shared != MAP_FAILED && second != MAP_FAILED);
    shared[5] = (char)round;
    MUST(second[5] == (char)round);
    munmap(shared, kPage);
    munmap(second, kPage);

    char* before = sbrk(0);
    MUST(sbrk(3 * kPage) == before && sbrk(0) == before + 3 * kPage);
    MUST(brk(before) == 0 && sbrk(0) == before);
    free(malloc(100));
    free(malloc(1 << 20));
  }
  expect("allocations", "==", 100);
  expect("live_blocks", "==", 0);
  say("done\n");
  return 0;
}
