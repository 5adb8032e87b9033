// Births and deaths into sites, threads and totals (see heap_model.h).
#include "reader/heap_model.h"

#include <algorithm>

#include "emitter/wire/entries.h"

namespace traceaf::reader {
namespace {

constexpr size_t kMaxHeld = 64;  // a hostile trace must not make each event search a long list

}  // namespace

uint32_t HeapModel::site_of(uint32_t node, uint8_t entry) {
  const auto [it, is_new] =
      site_ids_.try_emplace((static_cast<uint64_t>(node) << 8) | entry, static_cast<uint32_t>(cells_.size()));
  if (is_new) {
    SiteCell cell;
    cell.site.node = node;
    cell.site.entry = entry;
    cell.epoch = epoch_;
    cells_.push_back(cell);
  }
  return it->second;
}

// A birth at a live address: the old block ends without a death of its own.
void HeapModel::replace(uint32_t thread, uint64_t address, const Block& old, uint64_t now) {
  remove_live(old.site, old.size);
  if (const auto it = doubtful_.find(address); it != doubtful_.end()) {
    const uint32_t by = it->second.thread;
    doubtful_.erase(it);
    --profile_.frees_before;
    ++profile_.reordered;
    count_death(by, address, old, old.birth_ns);
    return;
  }
  settle(now, false);
  hold({address, now, thread, true, old});
}

void HeapModel::exists(uint64_t address, uint64_t type_id, uint64_t now) {
  const TypeMeaning& type = meaning(type_id);
  // A block known from before a gap keeps its birth.
  if (auto* const old = before_gap_.find(address); old != nullptr && old->block.size == type.size) {
    const Block block = old->block;
    before_gap_.erase(old);
    if (const auto [entry, is_new] = live_.insert(address); is_new) {
      entry->block = block;
      add_live(block.site, block.size, now);
    }
    return;
  }
  const auto [entry, is_new] = live_.insert(address);
  if (!is_new) {
    if (entry->block.size == type.size) return;  // told twice
    replace(kInherited, address, entry->block, now);
  }
  entry->block = {type.size, now, type.site, kInherited};
  add(profile_.inherited, type.size);
  add_live(type.site, type.size, now);
}

// ---- pairs whose clocks disagreed ----------------------------------------------------------------------------------

void HeapModel::hold(const Held& held) {
  if (held_.size() == kMaxHeld) {
    give_up(held_.front());
    held_.erase(held_.begin());
  }
  held_.push_back(held);
}

// No other half came in time: what was seen is what happened.
void HeapModel::give_up(const Held& held) {
  if (held.birth) {
    ++profile_.double_births;
  } else {
    ++(exact_ ? profile_.unknown_frees : profile_.frees_before);
  }
}

void HeapModel::settle(uint64_t now, bool all) {
  size_t kept = 0;
  for (const Held& held : held_) {
    if (!all && now - held.time_ns <= kInversionNs) {
      held_[kept++] = held;
    } else {
      give_up(held);
    }
  }
  held_.resize(kept);
}

// A death at `address`: is it that of the block which a birth has just replaced?
bool HeapModel::resolve_death(uint32_t thread, uint64_t address, uint64_t now) {
  settle(now, false);
  for (size_t i = 0; i < held_.size(); ++i) {
    const Held held = held_[i];
    // A thread's own order is never in doubt: what it frees after its birth is the new block.
    if (!held.birth || held.address != address || held.thread == thread) continue;
    held_.erase(held_.begin() + static_cast<ptrdiff_t>(i));
    ++profile_.reordered;
    count_death(thread, address, held.old, held.time_ns);
    return true;
  }
  return false;
}

// A birth at `address`: was its death told before it? Where the blocks of old are not all known, the death of one of
// those is the more likely story, unless both have one timestamp.
void HeapModel::resolve_birth(uint32_t thread, uint64_t address, uint64_t now) {
  settle(now, false);
  for (size_t i = 0; i < held_.size(); ++i) {
    const Held held = held_[i];
    if (held.birth || held.address != address || held.thread == thread) continue;
    held_.erase(held_.begin() + static_cast<ptrdiff_t>(i));
    if (!exact_ && held.time_ns != now) {
      give_up(held);
      doubtful_.insert_or_assign(address, held);
      return;
    }
    ++profile_.reordered;
    auto* const entry = live_.find(address);
    const Block block = entry->block;
    live_.erase(entry);
    remove_live(block.site, block.size);
    count_death(held.thread, address, block, now);
    return;
  }
}

// ---- gaps and the end ----------------------------------------------------------------------------------------------

void HeapModel::restart(bool snapshot) {
  settle(0, true);
  doubtful_.clear();
  if (before_gap_.size() != 0) before_gap_.clear();
  if (snapshot) std::swap(live_, before_gap_);
  live_.clear();
  for (SiteCell& cell : cells_) {
    touch(cell);
    cell.site.live = {};
  }
  profile_.live = {};
  std::fill(last_births_.begin(), last_births_.end(), LastBirth{});
}

void HeapModel::end_generation() {
  if (before_gap_.size() != 0) before_gap_.clear();
}

void HeapModel::finish() {
  settle(0, true);
  profile_.sites.reserve(cells_.size());
  for (SiteCell& cell : cells_) {
    touch(cell);
    if (wire::is_move(cell.site.entry)) profile_.moves += cell.site.allocated.count;
    profile_.sites.push_back(cell.site);
  }
  profile_.live_blocks.reserve(live_.size());
  live_.for_each([&](uint64_t address, const Block& block) {
    const uint64_t m = block.thread == kInherited ? 0 : contexts_.threads[block.thread].m;
    profile_.live_blocks.push_back({address, block.size, block.birth_ns, block.site, m});
  });
  live_.clear();
  std::sort(profile_.live_blocks.begin(), profile_.live_blocks.end(),
            [](const LiveBlock& a, const LiveBlock& b) { return a.address < b.address; });
}

}  // namespace traceaf::reader
