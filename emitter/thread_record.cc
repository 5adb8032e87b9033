// The list of threads (see thread_record.h).
#include "emitter/thread_record.h"

#include <sys/auxv.h>
#include <cstring>

#include "emitter/capture.h"
#include "emitter/clock.h"
#include "emitter/counters.h"
#include "emitter/lock.h"
#include "emitter/region.h"
#include "emitter/session.h"
#include "emitter/sys.h"

namespace traceaf::emitter {

constinit __thread ThreadLocal t_local = {};

namespace {

constinit std::atomic<ThreadRecord*> g_records{nullptr};
constinit Mutex g_registry;
constinit std::atomic<uint64_t> g_next_m{1};
constinit std::atomic<uint32_t> g_alive{0};

constexpr size_t round_page(size_t n) { return (n + 4095) & ~size_t{4095}; }

constexpr size_t kHeadBytes = round_page(sizeof(ThreadRecord));

void* capture_memory(ThreadRecord* record) { return reinterpret_cast<char*>(record) + kHeadBytes; }

// Reuses an idle record or maps a new one.
ThreadRecord* obtain_record() {
  const Locked lock(g_registry);
  for (ThreadRecord* r = g_records.load(std::memory_order_relaxed); r != nullptr; r = r->next)
    if (!r->in_use) {
      r->capture = capture_state_in(capture_memory(r), settings().depth);
      r->in_use = true;
      return r;
    }
  auto* record = static_cast<ThreadRecord*>(own_map(kHeadBytes + capture_state_bytes(settings().depth)));
  if (record == nullptr) return nullptr;
  record->capture = capture_state_in(capture_memory(record), settings().depth);
  record->in_use = true;
  record->next = g_records.load(std::memory_order_relaxed);
  g_records.store(record, std::memory_order_release);  // pairs with first_thread_record
  return record;
}

void mark_predecessors(int tid, const ThreadRecord* self) {
  for (ThreadRecord* r = first_thread_record(); r != nullptr; r = r->next)
    if (r != self && r->in_use && r->tid == tid) r->gone.store(true, std::memory_order_relaxed);
}

void begin_record(ThreadRecord* record, int tid) {
  record->m = g_next_m.fetch_add(1, std::memory_order_relaxed);
  record->tid = tid;
  record->birth_time = clock_ticks();
  record->last_time = record->birth_time;
  g_alive.fetch_add(1, std::memory_order_relaxed);
}

// The top of the main thread's stack: its last string (the program's file name) lies there.
uintptr_t main_stack_top() {
  const auto last = static_cast<uintptr_t>(getauxval(AT_EXECFN));
  if (last == 0) return 0;
  return (last + strlen(reinterpret_cast<const char*>(last)) + 4096) & ~uintptr_t{4095};
}

}  // namespace

ThreadRecord* register_thread() {
  if (t_local.registering) return nullptr;
  t_local.registering = true;
  ThreadRecord* record = obtain_record();
  if (record == nullptr) {
    // No memory: this thread's events are lost until a later call succeeds.
    count(wire::Counter::k_lost_threads);
  } else {
    const int tid = sys::tid();
    begin_record(record, tid);
    mark_predecessors(tid, record);
    if (tid == sys::pid()) {
      record->flags = wire::kThreadMain;
      const uintptr_t top = main_stack_top();
      const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
      // The kernel keeps mappings at least 128 MiB below the top, so what lies there is the stack.
      constexpr uintptr_t kOnlyStack = uintptr_t{128} << 20;
      if (top > here && top - here < kOnlyStack) record->stack_bounds = {top - kOnlyStack, top};
    }
    t_local.record = record;
  }
  t_local.registering = false;
  return record;
}

bool inside_recorder() { return t_local.inside; }

ThreadRecord* thread_record_for_flusher() {
  ThreadRecord* record = obtain_record();
  if (record == nullptr) return nullptr;
  begin_record(record, 0);
  record->flags = wire::kThreadFlusher;
  g_alive.fetch_sub(1, std::memory_order_relaxed);
  t_local.record = record;
  t_local.inside = true;
  return record;
}

ThreadRecord* first_thread_record() { return g_records.load(std::memory_order_acquire); }

bool thread_is_gone(const ThreadRecord& record) {
  if ((record.flags & wire::kThreadFlusher) != 0) return false;
  if (record.gone.load(std::memory_order_relaxed)) return true;
  return sys::call(SYS_tgkill, sys::pid(), record.tid, 0) == -ESRCH;
}

void thread_record_release(ThreadRecord* record) {
  ThreadRecord* next = record->next;
  // Its memory goes back to the system: it may have known deep stacks.
  sys::advise(capture_memory(record), round_page(capture_state_bytes(settings().depth)), MADV_DONTNEED);
  // Field by field it would be easy to forget one. The list pointer and `in_use` are only looked at under the lock or
  // by the flusher, which is the caller.
  const Locked lock(g_registry);
  memset(static_cast<void*>(record), 0, sizeof(*record));
  record->next = next;
  g_alive.fetch_sub(1, std::memory_order_relaxed);
}

unsigned live_thread_count() { return g_alive.load(std::memory_order_relaxed); }

void thread_records_after_fork() {
  g_registry.reset();
  for (ThreadRecord* r = first_thread_record(); r != nullptr; r = r->next) {
    CaptureState* capture = r->capture;
    ThreadRecord* next = r->next;
    const bool mine = r == t_local.record;
    const uint64_t stack_lo = r->stack_lo;
    const uint64_t stack_bytes = r->stack_bytes;
    const unwind::Bounds bounds = r->stack_bounds;
    memset(static_cast<void*>(r), 0, sizeof(*r));
    r->next = next;
    if (mine) {
      r->capture = capture;
      r->in_use = true;
      r->stack_lo = stack_lo;
      r->stack_bytes = stack_bytes;
      r->stack_bounds = bounds;
    }
  }
  g_alive.store(0, std::memory_order_relaxed);
  g_next_m.store(1, std::memory_order_relaxed);
  if (t_local.record != nullptr) {
    begin_record(t_local.record, sys::tid());
    t_local.record->flags = wire::kThreadMain;
  }
}

void thread_registry_lock() { g_registry.lock(); }
void thread_registry_unlock() { g_registry.unlock(); }

}  // namespace traceaf::emitter
