// Layout of the tail: the shared file mapping beside the output that holds what was recorded and not yet written there.
//
//   offset 0                TailHeader, padded to kTailHeaderBytes
//   kTailHeaderBytes + i*kSlotBytes   slot i: SlotHeader and its body
//
// The recorder writes through the mapping only, so after kill -9 the file holds everything committed. A reader takes
// every slot whose state is not kSlotFree: body[0, used) is the body of a batch (gen, m, time of the slot header).
// The body of an event slot is one EventBatch; that of a row slot one ExperimentalBatch, kind byte included.
// A slot is freed only after its bytes have been written to the output, so a batch may be in both: equal (gen, m, time,
// kind) means the same batch, and the one in the output is a whole copy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "emitter/wire/counters.h"

namespace traceaf::wire {

inline constexpr uint64_t kTailMagic = 0x316c696174666174;  // "taftail1" in memory order
inline constexpr uint32_t kTailVersion = 1;
inline constexpr size_t kTailHeaderBytes = 4096;
inline constexpr size_t kSlotBytes = 16384;
inline constexpr size_t kSlotHeaderBytes = 64;
inline constexpr size_t kSlotBody = kSlotBytes - kSlotHeaderBytes;

enum SlotState : uint32_t { kSlotFree = 0, kSlotFilling = 1, kSlotFull = 2 };
enum SlotKind : uint32_t { kSlotEvents = 0, kSlotRows = 1 };

struct SlotHeader {
  std::atomic<uint32_t> state;  // SlotState; claimed by compare-exchange free->filling, freed by the flusher alone
  uint32_t kind;                // SlotKind
  uint64_t gen;
  uint64_t m;
  uint64_t time;               // base of the batch; strictly rising for one m and kind
  std::atomic<uint32_t> used;  // committed bytes of the body; stored (release) by the owner after the bytes
  uint32_t reserved;
  uint64_t ticket;  // order in which slots became full; valid in state full
  uint8_t pad[16];
};
static_assert(sizeof(SlotHeader) == kSlotHeaderBytes);

// What `traceaf on|off|standby PID` asks for; the recorder answers in `state`.
enum class RecordState : uint32_t { kOff = 0, kStandby = 1, kOn = 2 };

struct TailHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes;
  uint32_t slot_bytes;
  std::atomic<uint32_t> slots;    // slots that the file has room for
  std::atomic<uint32_t> state;    // RecordState in force
  std::atomic<uint32_t> request;  // RecordState asked for from outside + 1; 0: nothing asked
  std::atomic<uint32_t> ended;    // EndReason once the recorder has said its last word, else 0
  uint32_t pid;
  std::atomic<uint32_t> bell;  // futex word (shared): rung (incremented and woken) to wake the flusher
  uint32_t reserved_word;
  uint64_t clock_freq;  // timestamp units per second
  uint64_t min_addr;    // base of all ids
  uint64_t page_size;
  uint64_t start_time;  // in timestamp units
  uint64_t start_mono_ns;
  uint64_t start_wall_ns;
  std::atomic<uint64_t> generation;  // the one being written, 0 in state off
  std::atomic<uint64_t> closed;      // the last one that is complete in the output
  uint64_t reserved[16];
  std::atomic<uint64_t> counters[kCounterSlots];
};
static_assert(sizeof(TailHeader) <= kTailHeaderBytes);
static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);

}  // namespace traceaf::wire
