// The rarer changes of a table of live blocks (see live_table.h).
#include "emitter/live_table.h"

namespace traceaf::emitter {
namespace {

// Keeps the compiler from moving stores across: the child of a fork may find the table as it is here (mend).
void in_this_order() { std::atomic_signal_fence(std::memory_order_seq_cst); }

uint64_t link_of(uint64_t* group) { return reinterpret_cast<uint64_t>(group); }
uint64_t* linked(uint64_t link) { return reinterpret_cast<uint64_t*>(link); }

}  // namespace

bool LiveTable::add_odd(LivePool& pool, const LiveBlock& block) {
  if (!odd_.put(pool, block)) {
    remove(block.address);
    return false;
  }
  if (block.address % kGranule != 0 || set(pool, block.address, kElsewhere)) return true;
  odd_.erase(block.address);
  return false;
}

LiveTable::Leaf* LiveTable::make_leaf(LivePool& pool, uintptr_t address) {
  Leaf* leaf = free_leaves_;
  if (leaf != nullptr) {
    free_leaves_ = leaf->next_free;
  } else {
    leaf = static_cast<Leaf*>(pool.take(sizeof(Leaf)));
    if (leaf == nullptr) return nullptr;
  }
  leaf->number = address >> kLeafBits;
  in_this_order();
  if (leaves_.put(pool, {Leaf::key_of(address), leaf})) return leaf;
  leaf->next_free = free_leaves_;
  free_leaves_ = leaf;
  return nullptr;
}

// Makes the group of an address, and the leaf when it is null. The leaf, or nullptr without memory.
LiveTable::Leaf* LiveTable::make_group(LivePool& pool, Leaf* leaf, uintptr_t address) {
  uint64_t* group = free_groups_;
  if (group == nullptr && fresh_groups_ == fresh_end_) {
    constexpr size_t kBatch = 4096;
    auto* fresh = static_cast<uint64_t*>(pool.take(kBatch));
    if (fresh == nullptr) return nullptr;
    fresh_groups_ = fresh;
    fresh_end_ = fresh + kBatch / sizeof(uint64_t);
  }
  if (leaf == nullptr) leaf = make_leaf(pool, address);
  if (leaf == nullptr) return nullptr;
  if (group != nullptr) {
    free_groups_ = linked(group[0]);
    group[0] = 0;
  } else {
    group = fresh_groups_;
    fresh_groups_ += kGranules;
  }
  in_this_order();
  leaf->groups[group_of(address)] = reinterpret_cast<uintptr_t>(group);
  ++leaf->used;
  return leaf;
}

void LiveTable::drop_group(Leaf& leaf, uintptr_t& group) {
  uint64_t* all = words(group);
  group = 0;
  in_this_order();
  all[0] = link_of(free_groups_);
  free_groups_ = all;
  if (--leaf.used == 0) drop_leaf(leaf);
}

void LiveTable::drop_leaf(Leaf& leaf) {
  leaves_.erase(leaf.number + 1);
  in_this_order();
  leaf.next_free = free_leaves_;
  free_leaves_ = &leaf;
}

void LiveTable::forget() {
  leaves_.forget();
  odd_.forget();
  free_groups_ = fresh_groups_ = fresh_end_ = nullptr;
  free_leaves_ = nullptr;
}

bool LiveTable::mend(LivePool& pool) {
  // What is free may be half taken: it is left alone from now on.
  free_groups_ = fresh_groups_ = fresh_end_ = nullptr;
  free_leaves_ = nullptr;
  const bool leaves = leaves_.mend(pool, [](LeafName& name) {
    if (name.leaf == nullptr) return false;
    Leaf& leaf = *name.leaf;
    name.name = leaf.number + 1;
    leaf.used = 0;
    for (uintptr_t& group : leaf.groups) {
      if (group == 0) continue;
      const uint64_t* all = words(group);
      uintptr_t count = 0;
      for (size_t i = 0; i < kGranules; ++i) count += all[i] != 0 ? 1 : 0;
      group = count == 0 ? 0 : reinterpret_cast<uintptr_t>(all) | count;
      leaf.used += count != 0 ? 1 : 0;
    }
    return leaf.used != 0;
  });
  // Such a block is added here first and removed here first: it counts when its place says so, too.
  const bool odd = odd_.mend(pool, [this](const LiveBlock& block) {
    if (block.address % kGranule != 0) return true;
    const LeafName* name = leaves_.find(Leaf::key_of(block.address));
    if (name == nullptr || name->leaf->groups[group_of(block.address)] == 0) return false;
    return words(name->leaf->groups[group_of(block.address)])[granule_of(block.address)] == kElsewhere;
  });
  if (leaves && odd) return true;
  forget();
  return false;
}

}  // namespace traceaf::emitter
