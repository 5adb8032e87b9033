// The background half of recording: a bare thread that moves full batches to the output, closes generations when they
// are due, reaps threads, and obeys the control word in the tail. Without it (it may not be made, or is parked) the
// threads of the program do the same work inline.
#pragma once

#include <cstdint>

#include "emitter/bare_thread.h"
#include "emitter/wire/tail.h"

namespace traceaf::emitter {

extern BareThread g_flusher;
inline bool flusher_runs() { return g_flusher.running(); }

// A writer took a slot: time to start the flusher or to wake it?
void flusher_slot_taken();
// The generation is due (the clock passed g_generation_due). Cheap when called again.
void flusher_due();
// No slot is free: waits for one a bounded time. nullptr: the event is lost. Waiting is counted, and after a wait in
// vain nobody waits again until the flusher got something done.
wire::SlotHeader* flusher_wait_for_slot(wire::SlotKind kind, uint64_t gen, uint64_t m, uint64_t time);
// A thread ended; reaping is worth a wake-up when many have.
void flusher_thread_ended();
// Outside every section, after each change: what must be done without a flusher (a due generation, a request from
// outside), and starting it in standby.
void flusher_inline_work();

// Makes sure that it runs (state standby wants someone who hears the bell).
void flusher_start();
// Ends the thread and keeps it from starting again until unparked as often as parked.
void flusher_stop();
void flusher_resume();
void flusher_after_fork();

}  // namespace traceaf::emitter
