// Hazard: code without unwind tables allocates: its callers can be found by its frame pointer only, and one of them may
// be missing.
// Right: the frame behind that code is marked in the report, the same call without that code in between is not.
#include <sys/mman.h>

#include "expect.h"

__attribute__((noinline)) static void allocates(void) { MUST(malloc(48) != NULL); }

// push %rbp; mov %rsp,%rbp; mov $allocates,%rax; call *%rax; pop %rbp; ret
static unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x5d, 0xc3};

__attribute__((noinline)) void calls_generated(void (*generated)(void)) {
  generated();
  __asm__ volatile("");
}

__attribute__((noinline)) void calls_compiled(void) {
  allocates();
  __asm__ volatile("");
}

int main(void) {
  void (*target)(void) = allocates;
  memcpy(code + 6, &target, sizeof target);
  void* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(page != MAP_FAILED);
  memcpy(page, code, sizeof code);
  MUST(mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0);
  for (int i = 0; i < 5; ++i) {
    calls_generated((void (*)(void))page);
    calls_compiled();
  }
  say("done\n");
  return 0;
}
