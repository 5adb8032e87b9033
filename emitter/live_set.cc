// The live blocks of the process (see live_set.h).
#include "emitter/live_set.h"

#include "emitter/clock.h"
#include "emitter/context_tree.h"
#include "emitter/counters.h"
#include "emitter/session.h"
#include "emitter/types.h"

namespace traceaf::emitter {

constinit std::atomic<bool> g_live_set_active{false};

namespace {

constexpr unsigned kShards = 1u << LiveTable::kShardBits;

struct alignas(64) Shard {
  BriefLock lock;
  uint64_t written = 0;  // number of the last snapshot that has this shard
  LiveTable table;
};

constinit Shard g_shards[kShards];
constinit LivePool g_pool;
// Number of the running or last snapshot; a shard with a lower `written` is still to be written.
constinit std::atomic<uint64_t> g_snapshot{0};

Shard& shard_of(uintptr_t address) { return g_shards[LiveTable::hash_of(address) >> (64 - LiveTable::kShardBits)]; }

void write_shard(Section& section, Shard& shard, uint64_t snapshot) {
  if (shard.written == snapshot) return;
  shard.written = snapshot;
  shard.table.visit([&](const LiveBlock& b) {
    const uint32_t type = type_of(section, b.node, static_cast<wire::Entry>(b.entry), b.align_log2, b.size);
    section.event(wire::Ev::kHeapObject, section.now(), (b.address - facts().min_addr) / wire::kMinHeapAlign, type);
  });
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
  for (Shard& shard : g_shards) shard.lock.lock();
  for (Shard& shard : g_shards) shard.table.forget();
  LivePool::Block* memory = g_pool.detach();
  // A thread that saw the set active may still add a block: to new memory.
  for (Shard& shard : g_shards) shard.lock.unlock();
  LivePool::release(memory);
}

bool live_set_add(Section* section, const LiveBlock& block) {
  Shard& shard = shard_of(block.address);
  const Locked lock(shard.lock);
  if (!keep_snapshot_exact(section, shard)) return false;
  // No memory: the block is missing from a later snapshot, its death will be one of an unknown block.
  if (!shard.table.add(g_pool, block)) count(wire::Counter::k_untracked_standby);
  return true;
}

bool live_set_remove(Section* section, uintptr_t address) {
  Shard& shard = shard_of(address);
  const Locked lock(shard.lock);
  if (!keep_snapshot_exact(section, shard)) return false;
  shard.table.remove(address);
  return true;
}

void live_set_touch(Section* section, uintptr_t address) {
  Shard& shard = shard_of(address);
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
  g_pool.after_fork();
  for (Shard& shard : g_shards)
    if (shard.lock.reset() && !shard.table.mend(g_pool)) count(wire::Counter::k_untracked_standby);
}

}  // namespace traceaf::emitter
