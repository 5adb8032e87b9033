// Members of the allocation family made from others, for a next allocator that lacks them (jemalloc 5.3.0 has neither
// pvalloc nor reallocarray nor free_sized). They use the slots, so nothing of another allocator is mixed in.
#pragma once

#include <cstddef>

namespace traceaf::preload::substitute {

void* reallocarray(void* p, size_t count, size_t size);
int posix_memalign_by_memalign(void** out, size_t align, size_t size);
void* memalign_by_posix_memalign(size_t align, size_t size);
void* memalign_by_aligned_alloc(size_t align, size_t size);
void* aligned_alloc(size_t align, size_t size);
void* valloc(size_t size);
void* pvalloc(size_t size);
void free_sized(void* p, size_t size);
void free_aligned_sized(void* p, size_t align, size_t size);

}  // namespace traceaf::preload::substitute
