// The rarer changes of a table of live blocks (see live_table.h).
#include "emitter/live_table.h"

#include <cstring>

namespace traceaf::emitter {

bool LiveTable::add_odd(LivePool& pool, const LiveBlock& block) {
  if (!odd_.put(pool, block)) {
    remove(block.address);
    return false;
  }
  if (block.address % kGranule != 0 || set(pool, block.address, kElsewhere)) return true;
  odd_.erase(block.address);
  return false;
}

bool LiveTable::is_elsewhere(uintptr_t address) const {
  const LeafName* name = leaves_.find(key_of(address));
  if (name == nullptr) return false;
  Leaf& leaf = name->leaf();
  if (name->is_dense()) return leaf.words(kDense)[granule_of(address)] == kElsewhere;
  const uint32_t at = leaf.index_of(granule_of(address));
  return at != leaf.used && leaf.words(name->kind())[at] == kElsewhere;
}

// `name`: of the address's leaf, a list, or null.
bool LiveTable::set_in_list(LivePool& pool, const LeafName* name, uintptr_t address, uint64_t word) {
  if (name == nullptr) {
    if (!make_leaf(pool, address)) return false;
    name = leaves_.find(key_of(address));
  }
  Leaf& leaf = name->leaf();
  uint64_t* words = leaf.words(name->kind());
  const uint32_t at = leaf.index_of(granule_of(address));
  if (at != leaf.used) {
    replace(words[at], word, address);
    return true;
  }
  if (at == capacity(name->kind())) return enlarge(pool, *name) && set(pool, address, word);
  words[at] = word;
  leaf.granules()[at] = static_cast<uint16_t>(granule_of(address));
  in_this_order();
  leaf.used = at + 1;
  return true;
}

LiveTable::Leaf* LiveTable::take_leaf(LivePool& pool, unsigned kind, uintptr_t number) {
  static_assert(Leaf::bytes(kDense) <= LivePool::kLargest && kDense < LivePool::kLine);
  static_assert(sizeof(Leaf) - LivePool::kLine == 0 && offsetof(Leaf, used) + sizeof(uint32_t) <= Leaf::kGranulesAt);
  Leaf* leaf = free_[kind];
  if (leaf != nullptr)
    free_[kind] = leaf->next_free;
  else
    leaf = static_cast<Leaf*>(pool.take(Leaf::bytes(kind)));
  if (leaf == nullptr) return nullptr;
  leaf->number = number;
  leaf->used = 0;
  return leaf;
}

void LiveTable::free_leaf(Leaf& leaf, unsigned kind) {
  leaf.next_free = free_[kind];
  free_[kind] = &leaf;
}

void LiveTable::drop_leaf(const LeafName& name) {
  Leaf& leaf = name.leaf();
  const unsigned kind = name.kind();
  leaves_.erase(name.name);
  in_this_order();
  free_leaf(leaf, kind);
}

bool LiveTable::make_leaf(LivePool& pool, uintptr_t address) {
  Leaf* leaf = take_leaf(pool, 0, address >> kLeafBits);
  if (leaf == nullptr) return false;
  in_this_order();
  if (leaves_.put(pool, {key_of(address), reinterpret_cast<uintptr_t>(leaf)})) return true;
  free_leaf(*leaf, 0);
  return false;
}

// Turns a full list into the next kind.
bool LiveTable::enlarge(LivePool& pool, const LeafName& name) {
  const unsigned kind = name.kind(), larger = kind + 1;
  Leaf& old = name.leaf();
  Leaf* fresh = take_leaf(pool, larger, old.number);
  if (fresh == nullptr) return false;
  uint64_t* words = fresh->words(larger);
  if (larger == kDense) {
    for (uint32_t i = 0; i < old.used; ++i) words[old.granules()[i]] = old.words(kind)[i];
  } else {
    memcpy(words, old.words(kind), old.used * sizeof(uint64_t));
    memcpy(fresh->granules(), old.granules(), old.used * sizeof(uint16_t));
  }
  fresh->used = old.used;
  in_this_order();
  leaves_.find(name.name)->tagged = reinterpret_cast<uintptr_t>(fresh) + larger;
  in_this_order();
  free_leaf(old, kind);
  return true;
}

void LiveTable::forget() {
  leaves_.forget();
  odd_.forget();
  for (Leaf*& leaf : free_) leaf = nullptr;
}

// A block that was being removed from a list may be there under another's name, or another twice.
void LiveTable::recount(LeafName& name) {
  Leaf& leaf = name.leaf();
  uint64_t* words = leaf.words(name.kind());
  const uint32_t before = leaf.used;
  leaf.used = 0;
  if (name.is_dense()) {
    for (size_t i = 0; i < kGranules; ++i) leaf.used += words[i] != 0 ? 1 : 0;
    return;
  }
  for (uint32_t i = 0; i < before; ++i) {
    if (leaf.index_of(leaf.granules()[i]) != leaf.used) continue;
    words[leaf.used] = words[i];
    leaf.granules()[leaf.used] = leaf.granules()[i];
    ++leaf.used;
  }
}

bool LiveTable::mend(LivePool& pool) {
  // What is free may be half taken: it is left alone from now on.
  for (Leaf*& leaf : free_) leaf = nullptr;
  const bool leaves = leaves_.mend(pool, [](LeafName& name) {
    if (name.tagged == 0) return false;
    name.name = name.leaf().number + 1;
    recount(name);
    return name.leaf().used != 0;
  });
  // Such a block is added here first and removed here first: it counts when its place says so, too.
  const bool odd = odd_.mend(
      pool, [this](const LiveBlock& block) { return block.address % kGranule != 0 || is_elsewhere(block.address); });
  if (leaves && odd) return true;
  forget();
  return false;
}

}  // namespace traceaf::emitter
