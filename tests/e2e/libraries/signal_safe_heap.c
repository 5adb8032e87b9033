// An allocator that signal handlers may interrupt anywhere and use themselves: preloaded behind libtraceaf.so, it lets
// programs allocate in handlers, which libc's forbids. Blocks are cut from chunks by one atomic addition and never used
// again.
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { kHead = 16 };
static const size_t kChunk = (size_t)64 << 20;

struct chunk {
  _Atomic size_t used;
};
static _Atomic(struct chunk*) current;

static struct chunk* new_chunk(size_t bytes) {
  void* at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return NULL;
  struct chunk* fresh = at;
  atomic_store(&fresh->used, 64);
  return fresh;
}

// `bytes` at a multiple of `align` (a power of two), with the size in the word before them.
static void* take(size_t align, size_t bytes) {
  if (align < kHead) align = kHead;
  if (bytes > SIZE_MAX / 4 || align > kChunk) {
    errno = ENOMEM;
    return NULL;
  }
  const size_t room = (kHead + align + bytes + kHead - 1) & ~(size_t)(kHead - 1);
  for (;;) {
    struct chunk* chunk = atomic_load(&current);
    size_t at = 0;
    size_t limit = 0;
    if (chunk != NULL && room <= kChunk / 4) {
      at = atomic_fetch_add(&chunk->used, room);
      limit = kChunk;
    }
    if (chunk == NULL || room > kChunk / 4 || at + room > limit) {
      struct chunk* fresh = new_chunk(room > kChunk / 4 ? room + 64 : kChunk);
      if (fresh == NULL) {
        errno = ENOMEM;
        return NULL;
      }
      if (room <= kChunk / 4) {
        if (!atomic_compare_exchange_strong(&current, &chunk, fresh)) munmap(fresh, kChunk);
        continue;
      }
      chunk = fresh;
      at = 64;
    }
    const uintptr_t block = ((uintptr_t)chunk + at + kHead + align - 1) & ~(uintptr_t)(align - 1);
    ((size_t*)block)[-1] = bytes;
    return (void*)block;
  }
}

void* malloc(size_t bytes) { return take(kHead, bytes); }
void free(void* block) { (void)block; }
void* calloc(size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  return take(kHead, bytes);  // pages of a chunk are zero, and none is used twice
}
void* realloc(void* block, size_t bytes) {
  void* fresh = take(kHead, bytes);
  if (block == NULL || fresh == NULL) return fresh;
  const size_t old = ((size_t*)block)[-1];
  return memcpy(fresh, block, old < bytes ? old : bytes);
}
int posix_memalign(void** out, size_t align, size_t bytes) {
  *out = take(align, bytes);
  return *out == NULL ? ENOMEM : 0;
}
void* aligned_alloc(size_t align, size_t bytes) { return take(align, bytes); }
void* memalign(size_t align, size_t bytes) { return take(align, bytes); }
size_t malloc_usable_size(void* block) { return block == NULL ? 0 : ((size_t*)block)[-1]; }
