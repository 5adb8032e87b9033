// The tail (wire/tail.h): a shared file mapping of slots in which batches are written, so that whatever was committed
// survives the process. Slots are claimed lock-free by recording threads and freed by whoever drains (one at a time).
#pragma once

#include <cstdint>

#include "emitter/wire/tail.h"

namespace traceaf::emitter {

// The header of the mapped tail, or nullptr when none is mapped.
extern wire::TailHeader* g_tail;

// Creates the tail beside the output `path`. 0 or -errno. `limit_bytes` bounds the slots that it will ever have.
int tail_create(const char* path, uint64_t limit_bytes);
// Removes the file's name; the mapping stays, so late events have somewhere to go.
void tail_unlink();
// In a forked child: unmaps the parent's tail without touching it.
void tail_forget();

// A free slot, now in state filling with used = 0 and the given identity; nullptr when there is none and the tail can't
// grow (never waits).
wire::SlotHeader* slot_claim(wire::SlotKind kind, uint64_t gen, uint64_t m, uint64_t time);
inline uint8_t* slot_body(wire::SlotHeader* slot) { return reinterpret_cast<uint8_t*>(slot) + wire::kSlotHeaderBytes; }
// Hands the slot to the drain. Its owner does not touch it any more.
void slot_seal(wire::SlotHeader* slot);
void slot_free(wire::SlotHeader* slot);

uint32_t slots_full();   // sealed and not yet drained
uint32_t slots_limit();  // as many as there can be
// Calls take(context, slot) for the sealed slots of generation `gen` in the order in which they were sealed; take must
// free or keep each. Only one thread at a time. Slots sealed while it runs may be left for the next call, never out of
// order for one thread.
void slots_drain(uint64_t gen, void (*take)(void* context, wire::SlotHeader* slot), void* context);

}  // namespace traceaf::emitter
