// The live blocks of the process (see live_set.h).
#include "emitter/live_set.h"

#include "emitter/clock.h"
#include "emitter/context_tree.h"
#include "emitter/counters.h"
#include "emitter/intern.h"
#include "emitter/lock.h"
#include "emitter/region.h"
#include "emitter/session.h"
#include "emitter/types.h"

namespace traceaf::emitter {

constinit std::atomic<bool> g_live_set_active{false};

namespace {

constexpr unsigned kShardBits = 6;
constexpr unsigned kShards = 1u << kShardBits;
constexpr size_t kFirstSlots = 256;

// Open addressing with linear probing; removal shifts later entries back, so there are no tombstones.
struct alignas(64) Shard {
  Mutex lock;
  LiveBlock* slots = nullptr;
  size_t capacity = 0;  // power of two
  size_t used = 0;
  uint64_t written = 0;  // number of the last snapshot that has this shard
};

constinit Shard g_shards[kShards];
// Number of the running or last snapshot; a shard with a lower `written` is still to be written.
constinit std::atomic<uint64_t> g_snapshot{0};

uint64_t hash_of(uintptr_t address) { return mix(address, 0x51ed270b); }
Shard& shard_of(uint64_t hash) { return g_shards[hash >> (64 - kShardBits)]; }

bool insert(Shard& shard, const LiveBlock& block, uint64_t hash) {
  for (size_t i = hash & (shard.capacity - 1);; i = (i + 1) & (shard.capacity - 1)) {
    LiveBlock& slot = shard.slots[i];
    if (slot.address == 0) {
      slot = block;
      ++shard.used;
      return true;
    }
    if (slot.address == block.address) {
      slot = block;
      return true;
    }
  }
}

bool grow(Shard& shard) {
  const size_t capacity = shard.capacity == 0 ? kFirstSlots : shard.capacity * 2;
  auto* fresh = static_cast<LiveBlock*>(own_map(capacity * sizeof(LiveBlock)));
  if (fresh == nullptr) return false;
  LiveBlock* old = shard.slots;
  const size_t old_capacity = shard.capacity;
  shard.slots = fresh;
  shard.capacity = capacity;
  shard.used = 0;
  for (size_t i = 0; i < old_capacity; ++i)
    if (old[i].address != 0) insert(shard, old[i], hash_of(old[i].address));
  if (old != nullptr) own_unmap(old, old_capacity * sizeof(LiveBlock));
  return true;
}

void erase(Shard& shard, uintptr_t address, uint64_t hash) {
  if (shard.capacity == 0) return;
  const size_t mask = shard.capacity - 1;
  size_t hole = hash & mask;
  while (shard.slots[hole].address != address) {
    if (shard.slots[hole].address == 0) return;
    hole = (hole + 1) & mask;
  }
  --shard.used;
  for (size_t i = hole;;) {
    i = (i + 1) & mask;
    if (shard.slots[i].address == 0) break;
    const size_t home = hash_of(shard.slots[i].address) & mask;
    // Moves back unless its home lies (cyclically) behind the hole.
    if (((i - home) & mask) >= ((i - hole) & mask)) {
      shard.slots[hole] = shard.slots[i];
      hole = i;
    }
  }
  shard.slots[hole].address = 0;
}

void write_shard(Section& section, Shard& shard, uint64_t snapshot) {
  if (shard.written == snapshot) return;
  shard.written = snapshot;
  for (size_t i = 0; i < shard.capacity; ++i) {
    const LiveBlock& b = shard.slots[i];
    if (b.address == 0) continue;
    const uint32_t type = type_of(section, b.node, static_cast<wire::Entry>(b.entry), b.align_log2, b.size);
    section.event(wire::Ev::kHeapObject, section.now(), (b.address - facts().min_addr) / wire::kMinHeapAlign, type);
  }
}

// With the shard's lock held, before it changes. False: the change can't be made without an event.
bool keep_snapshot_exact(Section* section, Shard& shard) {
  const uint64_t snapshot = g_snapshot.load(std::memory_order_acquire);
  if (section == nullptr) return shard.written != snapshot || g_generation.load(std::memory_order_acquire) == 0;
  write_shard(*section, shard, snapshot);
  return true;
}

}  // namespace

void live_set_start() { g_live_set_active.store(true, std::memory_order_relaxed); }

void live_set_stop() {
  g_live_set_active.store(false, std::memory_order_relaxed);
  for (Shard& shard : g_shards) {
    const Locked lock(shard.lock);
    if (shard.slots != nullptr) own_unmap(shard.slots, shard.capacity * sizeof(LiveBlock));
    shard.slots = nullptr;
    shard.capacity = 0;
    shard.used = 0;
  }
}

bool live_set_add(Section* section, const LiveBlock& block) {
  const uint64_t hash = hash_of(block.address);
  Shard& shard = shard_of(hash);
  const Locked lock(shard.lock);
  if (!keep_snapshot_exact(section, shard)) return false;
  if (shard.used * 4 >= shard.capacity * 3 && !grow(shard) && shard.used + 1 >= shard.capacity) {
    // No memory: the block is missing from a later snapshot, its death will be one of an unknown block.
    count(wire::Counter::k_untracked_standby);
    return true;
  }
  insert(shard, block, hash);
  return true;
}

bool live_set_remove(Section* section, uintptr_t address) {
  const uint64_t hash = hash_of(address);
  Shard& shard = shard_of(hash);
  const Locked lock(shard.lock);
  if (!keep_snapshot_exact(section, shard)) return false;
  erase(shard, address, hash);
  return true;
}

void live_set_touch(Section* section, uintptr_t address) {
  Shard& shard = shard_of(hash_of(address));
  const Locked lock(shard.lock);
  keep_snapshot_exact(section, shard);
}

void live_set_snapshot(Section& section) {
  const uint64_t snapshot = g_snapshot.load(std::memory_order_acquire);
  for (Shard& shard : g_shards) {
    const Locked lock(shard.lock);
    write_shard(section, shard, snapshot);
  }
}

void live_set_begin_snapshot() { g_snapshot.fetch_add(1, std::memory_order_acq_rel); }

void live_set_after_fork() {
  for (Shard& shard : g_shards) shard.lock.reset();
}

}  // namespace traceaf::emitter
