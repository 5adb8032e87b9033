// A recorder that only takes notes, for testing the interposers: it stands in for emitter/ behind emitter/recorder.h.
// Notes are taken between note() and notes_end(), of the calling thread or of all; nothing here allocates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emitter/recorder.h"

namespace fake {

enum class What {
  kBorn,
  kDying,
  kMoveBegin,
  kMoved,
  kMoveFailed,
  kMoveFreed,
  kMapped,
  kUnmapping,
  kRestored,
  kBreak,
  kThreadBegin,
  kThreadEnd,
  kOption,
  kEnding,
  kForkPrepare,
  kForkParent,
  kForkChild,
  kModulesChanging,
  kModulesChanged,
  kPark,
  kUnpark,
};

struct Note {
  What what;
  const void* p;  // block, mapping or stack; of kMoved the new block
  size_t size;
  const void* old;  // of kMoved
  size_t align;
  int number;  // entry, span source, end reason
  int status;  // of kEnding; `last` of it in `align`
  uintptr_t return_address;
  char text[64];  // of kOption
};

// The state that every call sees. Starts as kGateOff.
void set_gate(uint32_t state);
// Forgets earlier notes and opens the gate.
void note(bool all_threads = false);
// Closes the gate; returns the notes in order.
size_t notes_end(const Note** notes);
// What own_process() says beyond comparing pids.
void set_guard(bool on);
void set_inside(bool inside);
// Notes also go to this array shared with child processes, from index *count on. Null: no longer.
void share(Note* notes, uint32_t* count, uint32_t room);
// What the start handed over.
const traceaf::emitter::NextAllocator& next_allocator_info();
int init_argc();
char** init_argv();
char** init_envp();
int init_calls();

}  // namespace fake
