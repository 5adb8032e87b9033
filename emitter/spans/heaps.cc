// The heaps that grow and shrink in place: brk and glibc's arenas. A heap is one span; growth frees it and announces it
// anew, longer, so that no object ever lies across two spans and one range covers a whole heap.
#include "emitter/spans/maps.h"
#include "emitter/spans/state.h"

namespace traceaf::emitter::spans {

void learn_break() {
  State& s = g_state;
  if (s.break_known.load(std::memory_order_acquire)) return;
  uintptr_t start = 0;
  {
    const Locked proc(s.proc_lock);
    start = break_start(s.proc_buffer, sizeof s.proc_buffer);
  }
  // Without /proc only what the heap grows by from now on is known.
  if (start == 0) start = break_now();
  const Locked lock(s.lock);
  if (s.break_known.load(std::memory_order_relaxed)) return;
  s.break_start = s.break_end = page_floor(start);
  s.break_known.store(true, std::memory_order_release);  // pairs with the acquire above: another thread may skip this
}

void sync_break(Sink& sink) {
  State& s = g_state;
  uintptr_t end = page_ceil(break_now());
  if (end < s.break_start) end = s.break_start;
  if (end < s.break_end) {
    s.set.remove(sink, end, s.break_end);
  } else if (end > s.break_end) {
    const IntervalSet::Node* last = s.break_end > s.break_start ? s.set.find(s.break_end - 1) : nullptr;
    if (last != nullptr && last->source == wire::SpanSource::kBrk) {
      s.set.grow(sink, last, last->base, end);
    } else {
      s.set.insert(sink, {s.break_end, end - s.break_end, wire::kSpanKindOther, 0, wire::SpanSource::kBrk, false});
    }
  }
  s.break_end = end;
}

void sync_arena(Sink& sink, glibc::Range heap) {
  IntervalSet& set = g_state.set;
  const IntervalSet::Node* node = set.find(heap.lo);
  if (node == nullptr || node->source != wire::SpanSource::kArena || node->base != heap.lo) {
    set.insert(sink, {heap.lo, heap.hi - heap.lo, wire::kSpanKindOther, 0, wire::SpanSource::kArena, false});
  } else if (node->end < heap.hi) {
    set.grow(sink, node, heap.lo, heap.hi);
  } else if (node->end > heap.hi) {
    set.remove(sink, heap.hi, node->end);
  }
}

}  // namespace traceaf::emitter::spans
