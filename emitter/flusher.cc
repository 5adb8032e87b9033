// The background half of recording (see flusher.h).
#include "emitter/flusher.h"

#include "emitter/bare_thread.h"
#include "emitter/clock.h"
#include "emitter/context_tree.h"
#include "emitter/counters.h"
#include "emitter/generation.h"
#include "emitter/modules.h"
#include "emitter/recorder.h"
#include "emitter/section.h"
#include "emitter/session.h"
#include "emitter/slots.h"
#include "emitter/span_sink.h"
#include "emitter/spans/spans.h"
#include "emitter/sys.h"

namespace traceaf::emitter {

constinit BareThread g_flusher;

namespace {

constexpr uint32_t kWakeSlots = 8;     // sealed slots (128 KiB) that are worth a wake-up
constexpr uint32_t kWakeThreads = 32;  // ended threads that are
constexpr uint64_t kPatienceNs = 2000ull * 1000 * 1000;

constinit Mutex g_control;  // guards start and stop of g_flusher
constinit std::atomic<uint32_t> g_parked{0};
constinit std::atomic<bool> g_stop{false};
constinit std::atomic<bool> g_refused{false};  // the kernel gave no thread: work inline
constinit std::atomic<bool> g_sleeping{false};
constinit std::atomic<bool> g_dropping{false};
constinit std::atomic<bool> g_due_seen{false};
constinit std::atomic<uint32_t> g_ended_threads{0};
// Standby needs no flusher, but somebody must hear the bell of `traceaf on PID`: it is started once the program is
// under way. Until then, and without one, the threads of the program look for a request themselves.
constinit std::atomic<uint32_t> g_standby_calls{0};
constexpr uint32_t kStandbyCalls = 256;

// Wakes the flusher if it sleeps. The bell is in the tail, so `traceaf on PID` can ring it as well.
void ring() {
  wire::TailHeader* tail = g_tail;
  if (tail == nullptr) return;
  tail->bell.fetch_add(1, std::memory_order_seq_cst);
  if (g_sleeping.load(std::memory_order_seq_cst)) sys::futex_wake(&tail->bell, 1, true);
}

bool generation_is_over() {
  return g_generation.load(std::memory_order_relaxed) != 0 &&
         (clock_ticks() >= g_generation_due.load(std::memory_order_relaxed) || generation_is_large());
}

// One round of what is due, under the flush lock. False when recording has ended.
bool work() {
  if (!generation_drain()) return false;
  g_dropping.store(false, std::memory_order_relaxed);
  if (g_ended_threads.exchange(0, std::memory_order_relaxed) > 0) generation_reap();
  if (generation_is_over()) {
    g_due_seen.store(false, std::memory_order_relaxed);
    return generation_advance(true);
  }
  return true;
}

// What changed in the address space without a call of ours, told in the generation that ends.
void look_around() {
  Section section = Section::enter();
  if (!section.ok()) return;
  spans::Sink sink = span_sink(section);
  spans::reconcile(sink);
  modules_invalidate();  // libc unloads its own helpers (gconv, NSS) without dlclose
  context_unloaded_rows(section);
}

void obey_request() {
  const uint32_t request = g_tail->request.exchange(0, std::memory_order_acquire);
  if (request == 0) return;
  const auto state = static_cast<wire::RecordState>(request - 1);
  if (state > wire::RecordState::kOn) return;
  if (!try_change_state(state)) {
    uint32_t none = 0;  // a newer request goes first
    g_tail->request.compare_exchange_strong(none, request, std::memory_order_release);
  }
}

void run() {
  if (thread_record_if_known() == nullptr) thread_record_for_flusher();
  for (;;) {
    const uint32_t bell = g_tail->bell.load(std::memory_order_acquire);
    if (g_stop.load(std::memory_order_acquire)) return;
    obey_request();
    // Not under the flush lock: a thread that holds the span set's lock may be waiting for us to free a slot.
    if (generation_is_over()) look_around();
    g_flush.lock();
    const bool going = work() && g_generation.load(std::memory_order_relaxed) != 0;
    g_flush.unlock();
    if (going && slots_full() >= kWakeSlots) continue;
    const uint64_t due = g_generation_due.load(std::memory_order_relaxed);
    const uint64_t now = clock_ticks();
    timespec timeout{};
    const timespec* wait = nullptr;  // off, standby: until somebody rings
    if (due != ~uint64_t{0}) {
      const uint64_t ns = due > now ? (due - now) * kNsPerTick : 0;
      timeout = {static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
      wait = &timeout;
    }
    g_sleeping.store(true, std::memory_order_seq_cst);
    // The kernel compares the bell: a ring between our look and the wait is not missed.
    sys::futex_wait(&g_tail->bell, bell, wait, true);
    g_sleeping.store(false, std::memory_order_seq_cst);
  }
}

bool can_start() { return g_parked.load(std::memory_order_relaxed) == 0 && !g_refused.load(std::memory_order_relaxed); }

// Does the flusher's work on the calling thread, unless somebody else is at it.
void work_inline() {
  if (!g_flush.try_lock()) return;
  work();
  g_flush.unlock();
}

}  // namespace

void flusher_start() {
  if (g_flusher.running() || !can_start() || !g_control.try_lock()) return;
  if (!g_flusher.running() && can_start()) {
    g_stop.store(false, std::memory_order_relaxed);
    // EAGAIN, EPERM: no thread for us. Batches are then written by the threads that fill them.
    if (g_flusher.start(run) != 0) g_refused.store(true, std::memory_order_relaxed);
  }
  g_control.unlock();
}

void flusher_slot_taken() {
  const uint32_t full = slots_full();
  if (full == 0) return;
  if (!g_flusher.running()) {
    flusher_start();
    if (!g_flusher.running() && full >= kWakeSlots) {
      if (g_flush.try_lock()) {
        generation_drain();
        g_flush.unlock();
      }
    }
    return;
  }
  if (full >= kWakeSlots || generation_is_large()) ring();
}

void flusher_due() {
  if (g_due_seen.exchange(true, std::memory_order_relaxed)) return;
  if (!g_flusher.running()) flusher_start();
}

void flusher_inline_work() {
  if (g_flusher.running()) return;
  if (gate() == kGateStandby && g_standby_calls.fetch_add(1, std::memory_order_relaxed) == kStandbyCalls)
    flusher_start();
  const wire::TailHeader* tail = g_tail;
  if (tail != nullptr && tail->request.load(std::memory_order_relaxed) != 0) obey_request();
  if (!g_due_seen.load(std::memory_order_relaxed) || g_flusher.running() || can_start()) return;
  work_inline();
}

wire::SlotHeader* flusher_wait_for_slot(wire::SlotKind kind, uint64_t gen, uint64_t m, uint64_t time) {
  if (g_dropping.load(std::memory_order_relaxed)) return nullptr;
  count(wire::Counter::k_waits);
  const uint64_t begin = clock_ns();
  wire::SlotHeader* slot = nullptr;
  for (uint64_t now = begin; slot == nullptr && now - begin < kPatienceNs; now = clock_ns()) {
    if (g_tail == nullptr || g_generation.load(std::memory_order_relaxed) == 0) break;
    // Past the first half millisecond we drain ourselves: the flusher may wait for a lock that this thread holds.
    if (g_flusher.running() && now - begin < 500 * 1000) {
      ring();
      sys::sleep_ns(100 * 1000);
    } else if (g_flush.try_lock()) {
      generation_drain();
      g_flush.unlock();
    } else {
      sys::sleep_ns(200 * 1000);
    }
    slot = slot_claim(kind, gen, m, time);
  }
  count(wire::Counter::k_wait_ns, clock_ns() - begin);
  // The output is stuck (a hung disk, a stopped flusher): the program must not be. Until the flusher gets on, events
  // are dropped at once and counted in lost_events.
  if (slot == nullptr) g_dropping.store(true, std::memory_order_relaxed);
  return slot;
}

void flusher_thread_ended() {
  if (g_ended_threads.fetch_add(1, std::memory_order_relaxed) + 1 < kWakeThreads) return;
  if (g_flusher.running()) {
    ring();
  } else {
    flusher_start();
  }
}

void flusher_stop() {
  g_parked.fetch_add(1, std::memory_order_relaxed);
  if (g_flusher.is_current()) return;
  g_control.lock();
  if (g_flusher.running()) {
    g_stop.store(true, std::memory_order_release);
    ring();
    g_flusher.join();
  }
  g_control.unlock();
}

void flusher_resume() {
  if (g_parked.fetch_sub(1, std::memory_order_relaxed) == 1 && slots_full() > 0) flusher_start();
}

void flusher_after_fork() {
  g_flusher.forget();
  g_control.reset();
  g_parked.store(0, std::memory_order_relaxed);
  g_stop.store(false, std::memory_order_relaxed);
  g_refused.store(false, std::memory_order_relaxed);
  g_sleeping.store(false, std::memory_order_relaxed);
  g_dropping.store(false, std::memory_order_relaxed);
  g_due_seen.store(false, std::memory_order_relaxed);
  g_ended_threads.store(0, std::memory_order_relaxed);
}

}  // namespace traceaf::emitter
