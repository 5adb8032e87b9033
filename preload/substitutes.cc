// Members of the allocation family made from others (see substitutes.h). Results and errno as POSIX and glibc have
// them.
#include "preload/substitutes.h"

#include <cerrno>
#include <cstdint>

#include "preload/next.h"

namespace traceaf::preload::substitute {

namespace {
constexpr size_t kPage = 4096;
}

void* reallocarray(void* p, size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return next_realloc(p, bytes);
}

int posix_memalign_by_memalign(void** out, size_t align, size_t size) {
  if (align % sizeof(void*) != 0 || align == 0 || (align & (align - 1)) != 0) return EINVAL;
  const int before = errno;
  void* p = next_memalign(align, size);
  errno = before;
  if (p == nullptr) return ENOMEM;
  *out = p;
  return 0;
}

void* memalign_by_posix_memalign(size_t align, size_t size) {
  void* p = nullptr;
  const int error = next_posix_memalign(&p, align < sizeof(void*) ? sizeof(void*) : align, size);
  if (error == 0) return p;
  errno = error;
  return nullptr;
}

void* memalign_by_aligned_alloc(size_t align, size_t size) { return next_aligned_alloc(align, size); }

void* aligned_alloc(size_t align, size_t size) { return next_memalign(align, size); }

void* valloc(size_t size) { return next_memalign(kPage, size); }

void* pvalloc(size_t size) {
  const size_t rounded = (size + kPage - 1) & ~(kPage - 1);
  if (rounded < size) {
    errno = ENOMEM;
    return nullptr;
  }
  return next_memalign(kPage, rounded);
}

void free_sized(void* p, size_t size) { next_free(p); }
void free_aligned_sized(void* p, size_t align, size_t size) { next_free(p); }

}  // namespace traceaf::preload::substitute
