// The live blocks of the process by address, kept from standby on so that recording can start with an exact snapshot.
// A table in shards, each under its own lock, which is held for a few loads only.
#pragma once

#include <atomic>
#include <cstdint>

#include "emitter/live_table.h"
#include "emitter/section.h"

namespace traceaf::emitter {

// Whether births and deaths are followed (standby, or on after standby).
extern std::atomic<bool> g_live_set_active;
inline bool live_set_active() { return g_live_set_active.load(std::memory_order_relaxed); }
void live_set_start();
void live_set_stop();  // forgets all blocks

// `section` is the thread's open section, or null in standby. While a snapshot is being taken, a shard that it has not
// reached yet is written out by whoever changes it first, so the snapshot shows one moment. False: nothing was done,
// because recording has begun since the standby section was entered and this shard is already written, so the change
// needs an event: leave, enter again, and do it there.
bool live_set_add(Section* section, const LiveBlock& block);
bool live_set_remove(Section* section, uintptr_t address);
// The block will be removed later with a stamp taken now: a snapshot that is under way must have it before.
void live_set_touch(Section* section, uintptr_t address);
// From now on the set is to be written anew; before the generation that will hold the snapshot begins.
void live_set_begin_snapshot();
// Writes a HeapObject event for every live block. Writers of other threads go on meanwhile.
void live_set_snapshot(Section& section);
void live_set_after_fork();

}  // namespace traceaf::emitter
