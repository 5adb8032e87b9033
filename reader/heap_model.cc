// Births and deaths into sites, threads and totals (see heap_model.h).
#include "reader/heap_model.h"

#include <algorithm>
#include <bit>

#include "emitter/wire/entries.h"

namespace traceaf::reader {
namespace {

constexpr size_t kMaxHeld = 64;  // a hostile trace must not make each event search a long list

void add(Amount& amount, uint64_t bytes) {
  ++amount.count;
  amount.bytes += bytes;
}

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

// What the type means, with its site. An unknown type is a block of 0 bytes at the site without a name.
const TypeMeaning& HeapModel::meaning(uint64_t type_id) {
  TypeMeaning* known = contexts_.type(type_id);
  if (known == nullptr) {
    ++profile_.unknown_types;
    known = &unknown_;
  }
  if (known->site == TypeMeaning::kNoSite) known->site = site_of(known->node, known->entry);
  return *known;
}

void HeapModel::add_live(uint32_t site, uint64_t size, uint64_t now) {
  SiteCell& cell = cells_[site];
  touch(cell);
  add(cell.site.live, size);
  add(profile_.live, size);
  if (profile_.live.bytes > profile_.peak.bytes) {
    profile_.peak = profile_.live;
    profile_.peak_time_ns = now;
    ++epoch_;
  }
}

void HeapModel::remove_live(uint32_t site, uint64_t size) {
  SiteCell& cell = cells_[site];
  touch(cell);
  --cell.site.live.count;
  cell.site.live.bytes -= size;
  --profile_.live.count;
  profile_.live.bytes -= size;
}

// The death of a block that thread `thread` freed; the block is no longer in live_.
void HeapModel::count_death(uint32_t thread, uint64_t address, const Block& block, uint64_t now) {
  Site& site = cells_[block.site].site;
  add(site.freed, block.size);
  profile_.freed.bytes += block.size;
  contexts_.threads[thread].freed.bytes += block.size;
  if (block.thread == kInherited) return;
  const uint64_t lifetime = now - block.birth_ns;
  site.lifetime_ns += lifetime;
  add(profile_.lifetimes[static_cast<size_t>(std::bit_width(lifetime))], block.size);
  if (block.thread == thread && last_births_[thread].valid && last_births_[thread].address == address) {
    add(site.temporary, block.size);
    add(profile_.temporary, block.size);
    add(contexts_.threads[thread].temporary, block.size);
  }
}

void HeapModel::born(uint32_t thread, uint64_t address, uint64_t type_id, uint64_t now) {
  const TypeMeaning& type = meaning(type_id);
  const uint64_t size = type.size;
  Site& site = cells_[type.site].site;
  if (site.allocated.count == 0) site.first_birth_ns = now;
  site.last_birth_ns = now;
  add(site.allocated, size);
  add(profile_.allocated, size);
  add(contexts_.threads[thread].allocated, size);
  add(profile_.sizes[static_cast<size_t>(std::bit_width(size))], size);
  if (wire::is_move(type.entry)) ++profile_.moves;

  const Block block{size, now, type.site, thread};
  const auto [entry, is_new] = live_.insert(address, block);
  if (!is_new) [[unlikely]]
    replace(thread, address, entry->block, block, now);
  add_live(type.site, size, now);
  if (thread >= last_births_.size()) last_births_.resize(contexts_.threads.size());
  last_births_[thread] = {address, true};
  if (!held_.empty()) [[unlikely]]
    resolve_birth(thread, address, now);
}

// A birth at a live address: the old block ends without a death of its own.
void HeapModel::replace(uint32_t thread, uint64_t address, Block& old, const Block& block, uint64_t now) {
  remove_live(old.site, old.size);
  settle(now, false);
  hold({address, now, thread, true, old});
  old = block;
}

void HeapModel::exists(uint64_t address, uint64_t type_id, uint64_t now) {
  const TypeMeaning& type = meaning(type_id);
  // A block known from before a gap keeps its birth.
  if (auto* const old = before_gap_.find(address); old != nullptr && old->block.size == type.size) {
    const Block block = old->block;
    before_gap_.erase(old);
    if (live_.insert(address, block).second) add_live(block.site, block.size, now);
    return;
  }
  const Block block{type.size, now, type.site, kInherited};
  const auto [entry, is_new] = live_.insert(address, block);
  if (!is_new) {
    if (entry->block.size == type.size) return;  // told twice
    replace(kInherited, address, entry->block, block, now);
  }
  add(profile_.inherited, type.size);
  add_live(type.site, type.size, now);
}

void HeapModel::died(uint32_t thread, uint64_t address, uint64_t now) {
  ++profile_.freed.count;
  ++contexts_.threads[thread].freed.count;
  if (thread >= last_births_.size()) last_births_.resize(contexts_.threads.size());
  if (!held_.empty()) [[unlikely]] {
    if (resolve_death(thread, address, now)) return;
  }
  auto* const entry = live_.find(address);
  if (entry == nullptr) [[unlikely]] {
    hold({address, now, thread, false, {}});
    return;
  }
  const Block block = entry->block;
  live_.erase(entry);
  remove_live(block.site, block.size);
  count_death(thread, address, block, now);
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

// A birth at `address`: was its death told before it? Where the blocks of old are not all known, a death just before
// the birth of another block at its address is the more likely story, unless both have one timestamp.
void HeapModel::resolve_birth(uint32_t thread, uint64_t address, uint64_t now) {
  settle(now, false);
  for (size_t i = 0; i < held_.size(); ++i) {
    const Held held = held_[i];
    if (held.birth || held.address != address || held.thread == thread) continue;
    if (!exact_ && held.time_ns != now) continue;
    held_.erase(held_.begin() + static_cast<ptrdiff_t>(i));
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
