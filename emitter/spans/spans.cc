// Which span an object lies in, by the rules of the allocator in line, and the changes that follow (see spans.h).
#include "emitter/spans/spans.h"

#include <cstring>

#include "emitter/spans/maps.h"
#include "emitter/spans/state.h"
#include "emitter/spans/thread_cache.h"

namespace traceaf::emitter::spans {

constinit State g_state;

namespace {

using Node = IntervalSet::Node;
using wire::SpanSource;

// Under the lock. The span that holds the object, if the object does not reach out of it into nothing (a heap has grown
// since). One that reaches into another span counts as held: nothing better can be known.
const Node* holder(uintptr_t p, size_t size) {
  const Node* node = g_state.set.find(p);
  if (node == nullptr || size <= node->end - p) return node;
  return g_state.set.find(p + size - 1) != nullptr ? node : nullptr;
}

// ---- any allocator ------------------------------------------------------------------------------------------------

// The kernel's mapping around the object becomes a span as far as nothing else is known there. Without /proc the object
// stays outside every span, which costs the span view an object and nothing else.
void add_mapping(Cache& cache, Sink& sink, uintptr_t p, size_t size) {
  State& s = g_state;
  if (s.no_proc.load(std::memory_order_relaxed)) return;
  Mapping found;
  {
    const Locked proc(s.proc_lock);
    const Found answer = find_mapping(p, s.proc_buffer, sizeof s.proc_buffer, &found);
    if (answer == Found::kNoProc) s.no_proc.store(true, std::memory_order_relaxed);
    if (answer != Found::kYes) return;
  }
  const Locked lock(s.lock);
  const uintptr_t last = p + (size != 0 && size <= found.end - p ? size - 1 : 0);
  for (const uintptr_t at : {p, last}) {
    if (s.set.find(at) != nullptr) continue;
    const Span span{found.start, found.end - found.start, wire::kSpanKindOther, 0, SpanSource::kAllocator, false};
    s.set.fill(sink, at, span);
  }
  if (const Node* node = s.set.find(p); node != nullptr) remember(cache, node);
}

[[gnu::noinline]] void find_mapping_of(Cache& cache, Sink& sink, uintptr_t p, size_t size) {
  {
    State& s = g_state;
    const Locked lock(s.lock);
    const Node* node = holder(p, size);
    if (node == nullptr && p >= s.break_start && p < s.break_end) {
      sync_break(sink);
      node = holder(p, size);
    }
    if (node != nullptr) {
      remember(cache, node);
      return;
    }
  }
  add_mapping(cache, sink, p, size);
}

void born_generic(Cache& cache, Sink& sink, uintptr_t p, size_t size) {
  if (!in_cache(cache, p, size)) find_mapping_of(cache, sink, p, size);
}

// Under the lock. A span that is there already, born twice, stays.
void put(Sink& sink, const Span& span) {
  const Node* node = g_state.set.find(span.base);
  if (node != nullptr && node->base == span.base && node->end == span.base + span.bytes &&
      node->source == span.source) {
    return;
  }
  g_state.set.insert(sink, span);
}

// ---- glibc --------------------------------------------------------------------------------------------------------

bool is_heap(const Node* node) {
  return node->source == SpanSource::kBrk || node->source == SpanSource::kArena ||
         node->source == SpanSource::kAllocator;
}

[[gnu::noinline]] void find_heap(Cache& cache, Sink& sink, uintptr_t p, size_t size, bool arena) {
  State& s = g_state;
  {
    const Locked lock(s.lock);
    if (const Node* node = holder(p, size); node != nullptr && is_heap(node)) {
      remember(cache, node);
      return;
    }
  }
  // The heap is in use, so its header may be read.
  const glibc::Range heap = arena ? glibc::arena_heap(p) : glibc::Range{0, 0};
  if (!arena) learn_break();
  {
    const Locked lock(s.lock);
    if (heap.hi != 0) sync_arena(sink, heap);
    if (!arena) sync_break(sink);
    const Node* node = s.set.find(p);
    if (node != nullptr && !is_heap(node)) s.set.erase(sink, node);  // remains of something that went away unseen
    node = holder(p, size);
    if (node != nullptr) {
      remember(cache, node);
      return;
    }
  }
  add_mapping(cache, sink, p, size);  // the main arena where brk could not grow, or heaps of another size
}

void born_glibc(Cache& cache, Sink& sink, uintptr_t p, size_t size) {
  const uint64_t head = glibc::head(p);
  if ((head & glibc::kIsMmapped) == 0) {
    if (!in_cache(cache, p, size)) find_heap(cache, sink, p, size, (head & glibc::kNonMainArena) != 0);
    return;
  }
  const glibc::Range range = glibc::mapped_chunk(p, head);
  if (range.hi == 0) return;
  const Locked lock(g_state.lock);
  put(sink, {range.lo, range.hi - range.lo, wire::kSpanKindOther, 0, SpanSource::kMmapChunk, false});
}

// ---- jemalloc -----------------------------------------------------------------------------------------------------

// The tag of a slab page is the class counted from 1, as 0 means that nothing is known.
constexpr unsigned tag_of(int index) { return static_cast<unsigned>(index) + 1; }

// A slab of the same class may lie shifted over one that is gone: its objects begin elsewhere, as a shift of less than
// a slab is no multiple of the object size.
bool in_known_slab(uintptr_t p, int index) {
  const PageCache::Fact fact = g_state.pages.get(p);
  return fact.tag == tag_of(index) &&
         g_state.geometry.bin[index].boundary(static_cast<uint32_t>((p & (kPageSize - 1)) + fact.index * kPageSize));
}

[[gnu::noinline]] void find_slab(Sink& sink, uintptr_t p, int index) {
  State& s = g_state;
  const jemalloc::Bin& bin = s.geometry.bin[index];
  const uintptr_t base = jemalloc::slab_base(bin, p);
  if (base == 0) return;
  const Locked lock(s.lock);
  const Node* node = s.set.find(base);
  const bool known =
      node != nullptr && node->base == base && node->source == SpanSource::kSlab && node->object_size == bin.size;
  if (!known) {
    // As Go has it: spanclass << 1, where spanclass = size class << 1 | "has no pointers".
    node = s.set.insert(sink, {base, bin.slab_bytes, tag_of(index) << 2, bin.size, SpanSource::kSlab, true});
  }
  if (node != nullptr) s.pages.set(base, base + bin.slab_bytes, tag_of(index));
}

// A large object's extent begins at its page; the padding lets jemalloc move the object within the first page.
glibc::Range large_extent(uintptr_t p, size_t usable) {
  const uintptr_t lo = page_floor(p);
  return {lo, page_ceil(lo + usable + g_state.geometry.pad)};
}

void born_jemalloc(Sink& sink, uintptr_t p) {
  State& s = g_state;
  const size_t usable = s.usable_size(reinterpret_cast<void*>(p));
  const int index = s.geometry.index(usable);
  if (index >= 0) {
    if (!in_known_slab(p, index)) find_slab(sink, p, index);
  } else if (usable > s.geometry.small_max) {
    const glibc::Range range = large_extent(p, usable);
    const Locked lock(s.lock);
    put(sink, {range.lo, range.hi - range.lo, wire::kSpanKindOther, 0, SpanSource::kLarge, true});
  }
}

// Threads that come while another reads, and this one when mallctl gets memory and so comes back here, find
// kJemallocReading and go on without.
[[gnu::noinline]] void read_geometry() {
  State& s = g_state;
  Allocator expected = Allocator::kJemallocUnread;
  if (!s.allocator.compare_exchange_strong(expected, Allocator::kJemallocReading, std::memory_order_acquire)) return;
  const bool ok = jemalloc::read(s.mallctl, &s.geometry);
  if (ok) s.pages.prepare();
  // Pairs with the acquire in object_born: the geometry is complete.
  s.allocator.store(ok ? Allocator::kJemalloc : Allocator::kGeneric, std::memory_order_release);
}

// ---- blocks with a span of their own ------------------------------------------------------------------------------

Allocator allocator() { return g_state.allocator.load(std::memory_order_acquire); }

// An address inside the own span of the live block `p`, 0 when the block shares its span with others.
uintptr_t own_span_hint(uintptr_t p) {
  switch (allocator()) {
    case Allocator::kGlibc:
      return (glibc::head(p) & glibc::kIsMmapped) != 0 ? p - 16 : 0;
    case Allocator::kJemalloc:
      return g_state.pages.get(p).tag == 0 ? p : 0;
    default:
      return 0;
  }
}

// Under the lock.
const Node* own_span(uintptr_t hint) {
  const Node* node = g_state.set.find(hint);
  const bool own = node != nullptr && (node->source == SpanSource::kMmapChunk || node->source == SpanSource::kLarge);
  return own ? node : nullptr;
}

// What the own span of `p` is by the allocator's word, {0, 0} when it has none.
glibc::Range own_range(uintptr_t p) {
  switch (allocator()) {
    case Allocator::kGlibc: {
      const uint64_t head = glibc::head(p);
      return (head & glibc::kIsMmapped) != 0 ? glibc::mapped_chunk(p, head) : glibc::Range{0, 0};
    }
    case Allocator::kJemalloc: {
      const size_t usable = g_state.usable_size(reinterpret_cast<void*>(p));
      return usable > g_state.geometry.small_max ? large_extent(p, usable) : glibc::Range{0, 0};
    }
    default:
      return {0, 0};
  }
}

bool is_libc(const char* path) {
  if (path == nullptr) return false;
  const char* name = path;
  for (const char* c = path; *c != 0; ++c) {
    if (*c == '/') name = c + 1;
  }
  return strcmp(name, "libc.so.6") == 0;
}

}  // namespace

// ---- the interface ------------------------------------------------------------------------------------------------

void set_allocator(const NextAllocator& next) {
  State& s = g_state;
  s.set.attach(&s.pages);
  s.mallctl = next.mallctl;
  s.usable_size = next.usable_size;
  Allocator kind = Allocator::kGeneric;
  if (next.mallctl != nullptr && next.usable_size != nullptr) {
    kind = Allocator::kJemallocUnread;
  } else if (next.mallctl == nullptr && is_libc(next.object_path)) {
    kind = Allocator::kGlibc;
  }
  s.allocator.store(kind, std::memory_order_release);
}

void object_born(Cache& cache, Sink& sink, uintptr_t p, size_t size) {
  if (p == 0) return;
  Allocator kind = allocator();
  if (kind == Allocator::kJemallocUnread) {
    read_geometry();
    kind = allocator();
  }
  switch (kind) {
    case Allocator::kGlibc:
      return born_glibc(cache, sink, p, size);
    case Allocator::kJemalloc:
      return born_jemalloc(sink, p);
    case Allocator::kGeneric:
      return born_generic(cache, sink, p, size);
    case Allocator::kJemallocUnread:
    case Allocator::kJemallocReading:
      return;
  }
}

void object_dying(Cache& cache, Sink& sink, uintptr_t p) {
  if (p == 0) return;
  const uintptr_t hint = own_span_hint(p);
  if (hint == 0) return;
  const Locked lock(g_state.lock);
  if (const Node* node = own_span(hint); node != nullptr) g_state.set.erase(sink, node);
}

uint64_t before_move(uintptr_t old) {
  if (old == 0) return 0;
  const uintptr_t hint = own_span_hint(old);
  if (hint == 0) return 0;
  const Locked lock(g_state.lock);
  const Node* node = own_span(hint);
  return node != nullptr ? node->serial : 0;
}

void after_move(Cache& cache, Sink& sink, uint64_t remembered, uintptr_t old, uintptr_t p, size_t size) {
  if (remembered != 0) {
    const glibc::Range now = p != 0 ? own_range(p) : glibc::Range{0, 0};
    const uintptr_t hint = allocator() == Allocator::kGlibc ? old - 16 : old;
    const Locked lock(g_state.lock);
    // Another serial: the old range went to someone else while the real call ran, and that one's birth replaced the
    // span.
    const Node* node = own_span(hint);
    if (node != nullptr && node->serial == remembered) {
      if (node->base == now.lo && node->end == now.hi) return;
      g_state.set.erase(sink, node);
    }
  }
  object_born(cache, sink, p, size);
}

void mapping_added(Sink& sink, uintptr_t at, size_t bytes, wire::SpanSource source) {
  const uintptr_t lo = page_floor(at);
  const uintptr_t hi = page_ceil(at + bytes);
  if (bytes == 0 || hi <= lo) return;
  const Allocator kind = allocator();
  const Locked lock(g_state.lock);
  if (source == SpanSource::kAllocator && kind >= Allocator::kJemallocUnread) {
    // jemalloc's raw material: the slabs and extents that it cuts from it are the spans.
    g_state.set.remove(sink, lo, hi);
    return;
  }
  g_state.set.insert(sink, {lo, hi - lo, wire::kSpanKindOther, 0, source, false});
}

void mapping_removed(Sink& sink, uintptr_t at, size_t bytes) {
  // The kernel refuses an unaligned start and an empty range.
  if (at != page_floor(at) || bytes == 0 || page_ceil(at + bytes) <= at) return;
  const Locked lock(g_state.lock);
  g_state.set.remove(sink, at, page_ceil(at + bytes));
}

void break_changed(Sink& sink) {
  learn_break();
  const Locked lock(g_state.lock);
  sync_break(sink);
}

void snapshot(Sink& sink) {
  const Locked lock(g_state.lock);
  for (const Node* node = g_state.set.first(0); node != nullptr; node = node->next()) {
    sink.exists(sink.context, node->span());
  }
}

uint64_t lost() {
  const Locked lock(g_state.lock);
  return g_state.set.lost();
}

void reset() {
  State& s = g_state;
  const Locked lock(s.lock);
  s.set.clear();
  s.break_end = s.break_start;
  s.no_proc.store(false, std::memory_order_relaxed);
}

// ---- forks --------------------------------------------------------------------------------------------------------

void before_fork() {
  g_state.lock.lock();
  g_state.proc_lock.lock();
  g_state.held_for_fork = true;
}

void after_fork_parent() {
  g_state.held_for_fork = false;
  g_state.proc_lock.unlock();
  g_state.lock.unlock();
}

void after_fork() {
  State& s = g_state;
  // Nobody told us of the fork and another thread was changing the set: what there is of it cannot be read.
  if (!s.held_for_fork && !s.lock.try_lock()) {
    s.set.abandon();
    s.break_end = s.break_start;
  }
  s.held_for_fork = false;
  s.lock.reset();
  s.proc_lock.reset();
  s.reconciling.reset();
  // The thread that was asking jemalloc is not in the child.
  Allocator reading = Allocator::kJemallocReading;
  s.allocator.compare_exchange_strong(reading, Allocator::kJemallocUnread, std::memory_order_relaxed);
}

}  // namespace traceaf::emitter::spans
