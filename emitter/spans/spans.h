// Spans: the address ranges that allocators and the program got from the system, kept as an interval set, and the
// geometry of glibc's malloc and of jemalloc from which the span of an object follows.
// Thread-safe. Events are handed to the caller's sink in the order in which the set changes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emitter/recorder.h"
#include "emitter/wire/events.h"
#include "emitter/wire/rows.h"

namespace traceaf::emitter::spans {

struct Span {
  uintptr_t base;        // page aligned
  uint64_t bytes;        // whole pages
  uint64_t kind_class;   // wire::kSpanKindOther, or size class << 1 of a size-segregated span
  uint64_t object_size;  // of a size-segregated span, else 0
  wire::SpanSource source;
  bool inferred;  // from allocator geometry, not observed
};

// Where span events go: the write section of the current thread, or a test.
struct Sink {
  void* context;
  void (*alloc)(void* context, const Span& span);
  void (*free)(void* context, uintptr_t base);
  void (*exists)(void* context, const Span& span);
};

// Per-thread memory of the last spans hit, all-zero at first. Never shared.
struct Cache {
  uint64_t words[16];
};

void set_allocator(const NextAllocator& next);
// A block was obtained. Must be cheap when the block lies in a span that the cache or the set knows.
void object_born(Cache& cache, Sink& sink, uintptr_t p, size_t size);
// A block is about to be freed: ends the span of a block that was mapped alone.
void object_dying(Cache& cache, Sink& sink, uintptr_t p);
// realloc: what must be remembered of the old block before the real call, and the change after it succeeded.
uint64_t before_move(uintptr_t old);
void after_move(Cache& cache, Sink& sink, uint64_t remembered, uintptr_t old, uintptr_t p, size_t size);

void mapping_added(Sink& sink, uintptr_t at, size_t bytes, wire::SpanSource source);
void mapping_removed(Sink& sink, uintptr_t at, size_t bytes);
void break_changed(Sink& sink);

// Makes the set agree with /proc/self/maps again (heaps that grew, shrank or vanished unseen). Flusher only.
void reconcile(Sink& sink);
// `exists` for every span.
void snapshot(Sink& sink);
// Spans that could not be kept for want of memory.
uint64_t lost();
// Forgets everything (recording was off).
void reset();
// Around fork: hold the set still, and let go of it again in the parent or in the child, which keeps it (same address
// space). A child of which before_fork() did not know may find the set torn; it then begins with an empty one.
void before_fork();
void after_fork_parent();
void after_fork();

}  // namespace traceaf::emitter::spans
