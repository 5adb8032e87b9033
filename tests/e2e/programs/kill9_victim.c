// Hazard: SIGKILL at any moment (O52 of the bug log).
// Right: each event whose call returned before the end is in the report, none that was not begun. The program counts
// them in a file that it maps shared, which survives it: words 0 and 1 births begun and done, 2 and 3 deaths.
// Argument: the file.
#include <stdatomic.h>
#include <sys/mman.h>

#include "expect.h"

int main(int argc, char** argv) {
  MUST(argc == 2);
  const int fd = open(argv[1], O_RDWR | O_CREAT, 0666);
  MUST(fd >= 0 && ftruncate(fd, 4096) == 0);
  atomic_llong* count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  MUST(count != MAP_FAILED);
  void* ring[512] = {0};
  for (unsigned i = 0;; ++i) {
    void** slot = &ring[i % 512];
    if (*slot != NULL) {
      atomic_fetch_add(&count[2], 1);
      free(*slot);
      atomic_fetch_add(&count[3], 1);
    }
    atomic_fetch_add(&count[0], 1);
    *slot = malloc(16 + i % 1000);
    atomic_fetch_add(&count[1], 1);
  }
}
