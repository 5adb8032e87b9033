// Generations: self-contained parts of the trace. Closing one moves every writer to the next, collects its batches, and
// adds its tables. One thread at a time, under the flush lock.
#pragma once

#include <cstdint>

#include "emitter/lock.h"
#include "emitter/wire/rows.h"

namespace traceaf::emitter {

extern Mutex g_flush;  // guards the sink and all of the below

// Starts writing: the next generation becomes current. The sink is open.
void generation_begin();
// Writes sealed batches of the current generation to the output and frees their slots. False on an output error.
bool generation_drain();
// Closes the current generation and starts the next, or stops writing. False on an output error.
bool generation_advance(bool start_next);
// The trace's last word: an End row in the generation that is being closed, or in one made for it when none is open.
bool generation_finish(wire::EndReason reason, int status);
// Threads that are gone: their last events are written and their records freed.
void generation_reap();
// Plain bytes of the current generation have passed the limit.
bool generation_is_large();
// Continues the numbering behind `gen` (fork: rows of the parent must not count as written).
void generation_skip();

}  // namespace traceaf::emitter
