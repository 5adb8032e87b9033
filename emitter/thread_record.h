// What the recorder keeps of one thread, and the list of all threads. Records are never unmapped, so the flusher may
// look at one while its thread ends; they are reused for new threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "emitter/recorder.h"
#include "emitter/spans/spans.h"
#include "emitter/unwind/unwind.h"
#include "emitter/wire/tail.h"

namespace traceaf::emitter {

struct CaptureState;  // emitter/capture.h
struct ThreadRecord;

// The open batch of one kind in one generation (by parity).
struct Stream {
  wire::SlotHeader* slot;
  uint8_t* at;         // next byte to write
  uint8_t* end;        // of the slot's body
  uint8_t* last;       // where an event may still begin: kMaxEventBytes before `end`; null without a slot
  uint64_t gen;        // generation of `slot`, also while slot is null
  uint64_t last_time;  // of the last event; dt counts from here
  // First two fields of the last Node and the last Site row, from which the next ones are coded as differences.
  struct Pair {
    uint64_t first, second;
  } last_node, last_site;

  // Makes the bytes up to `at` part of the trace: whatever happens to the process now, they are read.
  void commit() {
    const uint8_t* body = reinterpret_cast<uint8_t*>(slot) + wire::kSlotHeaderBytes;
    slot->used.store(static_cast<uint32_t>(at - body), std::memory_order_release);
  }
  // The dt of an event at `time`, or at the last stamp of the stream or the thread when that is later.
  inline uint64_t advance(ThreadRecord& r, uint64_t time);
  void drop_slot() {
    slot = nullptr;
    last = nullptr;
  }
};

struct ThreadRecord {
  // ---- read by the advancer -------------------------------------------------------------------------------------
  // Depth of write sections: set before the generation is read, cleared (release) after the last write. Sequentially
  // consistent with the advancer's store of the generation: either it sees the flag or we see its generation.
  std::atomic<uint32_t> writing;
  std::atomic<uint64_t> section_gen;  // 0 until the outermost section has read the generation

  // ---- owned by the thread (or by the flusher once the thread is gone) -----------------------------------------
  uint32_t busy;                           // inside an append: a signal handler that lands here can't write
  Stream streams[2][2];                    // [generation & 1][wire::SlotKind]
  uint64_t last_time;                      // stamps of one thread never fall
  uint64_t last_base[2];                   // last batch base a kind: bases rise strictly
  uint64_t status_gen;                     // generation whose first event (status) has been written
  uint64_t free_index_gen;                 // generation that free_index counts in
  uint64_t free_index;                     // HeapObjectFree events written in it
  std::atomic<uint64_t> uncounted_events;  // written and not yet in the counter `events`; read by the flusher
  bool announced;                          // GoCreateSyscall was written
  CaptureState* capture;                   // of the stack walks; lies behind the record, as long as it
  unwind::Bounds stack_bounds;
  spans::Cache span_cache;

  uint64_t m;  // serial number: `m` and `g` in the trace
  int tid;
  uint64_t flags;  // wire::kThread*
  uint64_t birth_time;
  uint64_t stack_lo, stack_bytes;
  std::atomic<bool> stack_live;  // born and not yet freed in the trace
  std::atomic<bool> leaving;     // thread_end() ran: look whether it is gone
  std::atomic<bool> gone;        // another thread was seen with its tid or stack
  std::atomic<bool> in_use;      // set under the registry's lock
  ThreadRecord* next;            // list of all records, only ever prepended
};

inline uint64_t Stream::advance(ThreadRecord& r, uint64_t time) {
  if (time < r.last_time) time = r.last_time;
  if (time < last_time) time = last_time;
  r.last_time = time;
  const uint64_t dt = time - last_time;
  last_time = time;
  return dt;
}

// The recorder's whole thread-local storage.
struct ThreadLocal {
  ThreadRecord* record;
  bool inside;
  bool registering;  // a signal handler that interrupts the registration must not enter it again
};
extern __thread ThreadLocal t_local __attribute__((tls_model("initial-exec"), visibility("hidden")));

// The calling thread's record, registering the thread at its first call. nullptr when that is impossible: the thread's
// events are lost and lost_threads counts it.
ThreadRecord* register_thread();
inline ThreadRecord* thread_record() { return t_local.record != nullptr ? t_local.record : register_thread(); }
// The same without registering.
inline ThreadRecord* thread_record_if_known() { return t_local.record; }

// Marks the calling thread as inside the recorder; restores the earlier mark at the end.
class Inside {
 public:
  Inside() : before_(t_local.inside) {
    t_local.inside = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~Inside() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t_local.inside = before_;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  bool before_;
};

// A record for the calling thread, the flusher, which is none of the program's.
ThreadRecord* thread_record_for_flusher();

ThreadRecord* first_thread_record();  // then ->next; entries with !in_use are idle
bool thread_is_gone(const ThreadRecord& record);
// Makes the record of a gone thread available again. Its streams must be closed.
void thread_record_release(ThreadRecord* record);
unsigned live_thread_count();

// In a forked child: only the calling thread is left; it becomes a new thread of the trace.
void thread_records_after_fork();
void thread_registry_lock();
void thread_registry_unlock();

}  // namespace traceaf::emitter
