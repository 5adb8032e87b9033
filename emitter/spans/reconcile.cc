// Makes the set agree with the kernel about what went away, shrank or grew unseen. Runs on the flusher while others
// change the set: a span is only touched when it is older than the reading that speaks against it. A thread that holds
// the lock may be waiting for the flusher (for a free batch), so the lock is only tried; the next round does the rest.
#include "emitter/spans/maps.h"
#include "emitter/spans/state.h"
#include "emitter/sys.h"

namespace traceaf::emitter::spans {

namespace {

constexpr int kTries = 64;

class Tried {
 public:
  explicit Tried(Mutex& mutex) : mutex_(mutex) {
    for (int i = 0; i < kTries && !held_; ++i) {
      held_ = mutex.try_lock();
      if (!held_) sys::yield();
    }
  }
  ~Tried() {
    if (held_) mutex_.unlock();
  }
  Tried(const Tried&) = delete;
  Tried& operator=(const Tried&) = delete;
  explicit operator bool() const { return held_; }

 private:
  Mutex& mutex_;
  bool held_ = false;
};

char g_buffer[16384];

// Takes [lo, hi) from all spans that existed at `before`, but those of the brk heap, whose end the break tells exactly.
bool drop_hole(Sink& sink, uintptr_t lo, uintptr_t hi, uint64_t before) {
  State& s = g_state;
  const Tried lock(s.lock);
  if (!lock) return false;
  const bool heap = s.break_start < hi && s.break_end > lo;
  if (!heap) {
    s.set.remove(sink, lo, hi, before);
    return true;
  }
  if (lo < s.break_start) s.set.remove(sink, lo, s.break_start, before);
  if (hi > s.break_end) s.set.remove(sink, s.break_end, hi, before);
  return true;
}

bool drop_unmapped(Sink& sink, uint64_t before) {
  MapsReader maps(g_buffer, sizeof g_buffer);
  uintptr_t end = 0;
  Mapping mapping;
  while (maps.next(&mapping)) {
    if (mapping.start > end && !drop_hole(sink, end, mapping.start, before)) return false;
    if (mapping.end > end) end = mapping.end;
  }
  if (!maps.complete()) return false;
  return drop_hole(sink, end, ~uintptr_t{0}, before);
}

// The heaps' own word on their size. Read through /proc, since a heap may go away at any moment.
void resize_arenas(Sink& sink, uint64_t before) {
  State& s = g_state;
  int memory = -1;
  uintptr_t from = 0;
  for (;;) {
    uintptr_t heap = 0;
    uint64_t serial = 0;
    {
      const Tried lock(s.lock);
      if (!lock) break;
      const IntervalSet::Node* node = s.set.first(from);
      while (node != nullptr && (node->source != wire::SpanSource::kArena || node->base % glibc::kHeapAlign != 0 ||
                                 node->base < from || node->serial > before)) {
        node = node->next();
      }
      if (node == nullptr) break;
      heap = node->base;
      serial = node->serial;
    }
    from = heap + 1;
    if (memory < 0) memory = sys::open("/proc/thread-self/mem", O_RDONLY | O_CLOEXEC);
    if (memory < 0) break;
    uint64_t info[4];
    const long got = sys::call(SYS_pread64, memory, sys::word(info), sizeof info, static_cast<long>(heap));
    const uint64_t size = got == static_cast<long>(sizeof info) ? glibc::checked_heap_size(info) : 0;
    if (size == 0) continue;
    const Tried lock(s.lock);
    if (!lock) break;
    const IntervalSet::Node* node = s.set.find(heap);
    if (node != nullptr && node->base == heap && node->serial == serial) sync_arena(sink, {heap, heap + size});
  }
  if (memory >= 0) sys::close(memory);
}

}  // namespace

void reconcile(Sink& sink) {
  State& s = g_state;
  if (!s.reconciling.try_lock()) return;
  uint64_t before = 0;
  bool go = false;
  {
    const Tried lock(s.lock);
    go = static_cast<bool>(lock) && s.set.size() != 0;
    if (go) {
      before = s.set.serial();
      if (s.break_end > s.break_start) sync_break(sink);
    }
  }
  if (go && drop_unmapped(sink, before) && s.allocator.load(std::memory_order_acquire) == Allocator::kGlibc) {
    resize_arenas(sink, before);
  }
  s.reconciling.unlock();
}

}  // namespace traceaf::emitter::spans
