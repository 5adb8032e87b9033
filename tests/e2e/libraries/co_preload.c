// A second preload, as other tools are written (O01, O02 of the bug log): its wrappers look the next function up at
// each first call by dlsym, ask for a symbol that does not exist (dlerror then allocates), and allocate themselves.
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>

static __thread int inside;

#define NEXT(name)                          \
  static __typeof__(&name) next;            \
  if (next == NULL) {                       \
    dlsym(RTLD_DEFAULT, "no_such_symbol_"); \
    next = dlsym(RTLD_NEXT, #name);         \
  }

static void chatter(void) {
  if (inside) return;
  inside = 1;
  free(malloc(100));
  inside = 0;
}

void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  NEXT(mmap)
  chatter();
  return next(at, bytes, protection, flags, fd, offset);
}

int munmap(void* at, size_t bytes) {
  NEXT(munmap)
  chatter();
  return next(at, bytes);
}

int posix_memalign(void** out, size_t align, size_t size) {
  NEXT(posix_memalign)
  chatter();
  return next(out, align, size);
}

char* getenv(const char* name) {
  NEXT(getenv)
  chatter();
  return next(name);
}

// Before main, and before the constructors of what was preloaded first.
__attribute__((constructor)) static void begin(void) {
  for (int i = 0; i < 100; ++i) chatter();
  dlsym(RTLD_DEFAULT, "no_such_symbol_");
}
