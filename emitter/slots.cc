// The tail and its slots (see slots.h).
#include "emitter/slots.h"

#include <cerrno>
#include <cstring>

#include "emitter/counters.h"
#include "emitter/lock.h"
#include "emitter/own_file.h"
#include "emitter/region.h"
#include "emitter/sys.h"

namespace traceaf::emitter {

constinit wire::TailHeader* g_tail = nullptr;

namespace {

using wire::SlotHeader;

constexpr uint32_t kBlockSlots = 64;  // slots mapped at once: 1 MiB
constexpr size_t kBlockBytes = kBlockSlots * wire::kSlotBytes;
constexpr uint32_t kMaxBlocks = 4096;

constinit OwnFile g_file;
constinit Mutex g_grow;
// Written under g_grow, then counted in g_blocks (release); read after an acquire of g_blocks.
constinit char* g_block[kMaxBlocks] = {};
constinit std::atomic<uint32_t> g_blocks{0};
constinit uint32_t g_block_limit = 0;
constinit bool g_refused = false;           // a reserve failed: do not try again for each event
constinit std::atomic<uint32_t> g_hint{0};  // where the search for a free slot begins
constinit std::atomic<uint32_t> g_full{0};
constinit std::atomic<uint64_t> g_ticket{1};  // order of sealing

SlotHeader* slot_at(uint32_t index) {
  return reinterpret_cast<SlotHeader*>(g_block[index / kBlockSlots] + (index % kBlockSlots) * wire::kSlotBytes);
}

uint32_t index_of(const SlotHeader* slot) {
  const auto at = reinterpret_cast<uintptr_t>(slot);
  const uint32_t blocks = g_blocks.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < blocks; ++i) {
    const auto offset = at - reinterpret_cast<uintptr_t>(g_block[i]);
    if (offset < kBlockBytes) return i * kBlockSlots + static_cast<uint32_t>(offset / wire::kSlotBytes);
  }
  return ~uint32_t{0};
}

// One more block. Failure (disk full, RLIMIT_FSIZE, RLIMIT_AS, limit reached): the slots there are must do.
int grow() {
  const uint32_t have = g_blocks.load(std::memory_order_relaxed);
  if (have == g_block_limit || g_refused) return -ENOSPC;
  const uint64_t offset = wire::kTailHeaderBytes + uint64_t{have} * kBlockBytes;
  int r = g_file.reserve(offset, kBlockBytes);
  void* at = nullptr;
  if (r == 0) {
    at = sys::map_file(g_file.fd(), kBlockBytes, offset);
    if (at == nullptr) r = -ENOMEM;
  }
  if (r != 0) {
    g_refused = true;
    return r;
  }
  g_own_bytes.fetch_add(kBlockBytes, std::memory_order_relaxed);
  g_block[have] = static_cast<char*>(at);
  g_blocks.store(have + 1, std::memory_order_release);
  g_tail->slots.store((have + 1) * kBlockSlots, std::memory_order_release);
  return 0;
}

void unmap_blocks() {
  const uint32_t blocks = g_blocks.exchange(0, std::memory_order_relaxed);
  for (uint32_t i = 0; i < blocks; ++i) {
    sys::unmap(g_block[i], kBlockBytes);
    g_own_bytes.fetch_sub(kBlockBytes, std::memory_order_relaxed);
    g_block[i] = nullptr;
  }
  if (g_tail != nullptr) {
    counters_move(nullptr);
    sys::unmap(g_tail, wire::kTailHeaderBytes);
    g_own_bytes.fetch_sub(wire::kTailHeaderBytes, std::memory_order_relaxed);
    g_tail = nullptr;
  }
  g_full.store(0, std::memory_order_relaxed);
  g_hint.store(0, std::memory_order_relaxed);
  g_refused = false;
}

}  // namespace

int tail_create(const char* path, uint64_t limit_bytes) {
  int r = g_file.create(path);
  if (r != 0) return r;
  r = g_file.reserve(0, wire::kTailHeaderBytes);
  void* header = r == 0 ? sys::map_file(g_file.fd(), wire::kTailHeaderBytes, 0) : nullptr;
  if (header == nullptr) {
    g_file.unlink();
    g_file.forget();
    return r != 0 ? r : -ENOMEM;
  }
  g_own_bytes.fetch_add(wire::kTailHeaderBytes, std::memory_order_relaxed);
  g_tail = static_cast<wire::TailHeader*>(header);
  g_tail->version = wire::kTailVersion;
  g_tail->header_bytes = wire::kTailHeaderBytes;
  g_tail->slot_bytes = wire::kSlotBytes;
  g_tail->magic = wire::kTailMagic;
  g_block_limit = static_cast<uint32_t>(limit_bytes / kBlockBytes);
  if (g_block_limit > kMaxBlocks) g_block_limit = kMaxBlocks;
  if (g_block_limit == 0) g_block_limit = 1;
  counters_move(g_tail->counters);
  const Locked lock(g_grow);
  r = grow();
  if (r != 0) {
    unmap_blocks();
    g_file.unlink();
    g_file.forget();
  }
  return r;
}

void tail_unlink() { g_file.unlink(); }

void tail_forget() {
  g_grow.reset();
  unmap_blocks();
  g_file.forget();
}

SlotHeader* slot_claim(wire::SlotKind kind, uint64_t gen, uint64_t m, uint64_t time) {
  for (;;) {
    const uint32_t blocks = g_blocks.load(std::memory_order_acquire);
    const uint32_t slots = blocks * kBlockSlots;
    if (slots == 0) return nullptr;
    const uint32_t from = g_hint.load(std::memory_order_relaxed) % slots;
    for (uint32_t i = 0; i < slots; ++i) {
      const uint32_t index = (from + i) % slots;
      SlotHeader* slot = slot_at(index);
      uint32_t expected = wire::kSlotFree;
      if (slot->state.load(std::memory_order_relaxed) != wire::kSlotFree) continue;
      // Acquire pairs with the release of slot_free, which left used = 0: until the identity below is complete a reader
      // of the file sees an empty batch.
      if (!slot->state.compare_exchange_strong(expected, wire::kSlotFilling, std::memory_order_acq_rel)) continue;
      slot->kind = kind;
      slot->gen = gen;
      slot->m = m;
      slot->time = time;
      g_hint.store(index + 1, std::memory_order_relaxed);
      return slot;
    }
    const Locked lock(g_grow);
    if (g_blocks.load(std::memory_order_relaxed) != blocks) continue;
    if (grow() != 0) return nullptr;
  }
}

void slot_seal(SlotHeader* slot) {
  slot->ticket = g_ticket.fetch_add(1, std::memory_order_acq_rel);
  slot->state.store(wire::kSlotFull, std::memory_order_release);
  g_full.fetch_add(1, std::memory_order_relaxed);
}

void slot_free(SlotHeader* slot) {
  if (slot->state.load(std::memory_order_relaxed) == wire::kSlotFull) g_full.fetch_sub(1, std::memory_order_relaxed);
  slot->used.store(0, std::memory_order_relaxed);
  slot->state.store(wire::kSlotFree, std::memory_order_release);
  // The lowest free slot is taken next: few slots go round, and stay in the processor's cache.
  const uint32_t index = index_of(slot);
  uint32_t hint = g_hint.load(std::memory_order_relaxed);
  while (index < hint && !g_hint.compare_exchange_weak(hint, index, std::memory_order_relaxed)) {
  }
}

uint32_t slots_full() { return g_full.load(std::memory_order_relaxed); }
uint32_t slots_limit() { return g_block_limit * kBlockSlots; }

void slots_drain(uint64_t gen, void (*take)(void* context, SlotHeader* slot), void* context) {
  // Only slots whose ticket was drawn before the scan: of one thread's slots the earlier ones are then full as well,
  // since it seals one before it draws the next ticket.
  const uint64_t horizon = g_ticket.load(std::memory_order_acquire);
  const uint32_t slots = g_blocks.load(std::memory_order_acquire) * kBlockSlots;
  constexpr uint32_t kAtOnce = 64;
  SlotHeader* found[kAtOnce];
  for (uint64_t floor = 0;;) {
    // The kAtOnce lowest tickets above `floor`, by insertion into a sorted array.
    uint32_t n = 0;
    for (uint32_t i = 0; i < slots; ++i) {
      SlotHeader* slot = slot_at(i);
      if (slot->state.load(std::memory_order_acquire) != wire::kSlotFull || slot->gen != gen) continue;
      const uint64_t ticket = slot->ticket;
      if (ticket >= horizon || ticket <= floor) continue;
      if (n == kAtOnce && ticket > found[n - 1]->ticket) continue;
      uint32_t at = n < kAtOnce ? n++ : n - 1;
      while (at > 0 && found[at - 1]->ticket > ticket) {
        found[at] = found[at - 1];
        --at;
      }
      found[at] = slot;
    }
    for (uint32_t i = 0; i < n; ++i) {
      floor = found[i]->ticket;
      take(context, found[i]);
    }
    if (n < kAtOnce) return;
  }
}

}  // namespace traceaf::emitter
