// The state of recording in this process: settings, the state machine off / standby / on, start and end of the trace,
// and what a forked child makes of it. (The public half is in recorder.h.)
#pragma once

#include <cstdint>

#include "emitter/lock.h"
#include "emitter/options.h"
#include "emitter/recorder.h"

namespace traceaf::emitter {

// The options in force. depth, buffer and out keep the values of the first start.
const Options& settings();

// Facts of the session that rows and batches need.
struct SessionFacts {
  uint64_t min_addr;
  uint64_t page_size;
  uint64_t start_time;  // in ticks, at the start of this process image's recording
  uint64_t start_wall_ns;
  uint64_t parent_pid;  // the traced process that forked this one, 0 if none
  bool began;           // recording or standby has begun once
  bool live_exact;      // every block of the process is known since its first allocation
};
extern SessionFacts g_facts;  // written by session.cc
inline const SessionFacts& facts() { return g_facts; }

// Moves to `state`, on the flusher. False when a thread of the program is changing the state just now: try again later.
bool try_change_state(wire::RecordState state);
// Id and order of a thread stack in GoroutineStack events: order = log2(size rounded up to a power of two) + 1.
uint64_t stack_id(uint64_t lo);
uint64_t stack_order(uint64_t bytes);
// Output can't be written: recording ends, the program goes on. Called with the flush lock held. One line is printed.
void stop_for_error(const char* what, int error);
// A child of a fork that is to be followed begins its own trace; called at its first event.
void begin_child_session();

}  // namespace traceaf::emitter
