// The heap as the events tell it: live blocks, and per site, per thread and in all what was born, died and was live at
// the highest moment. Memory grows with live blocks and sites.
//
// At one address births and deaths alternate. A birth at a live address ends the old block, a death at a dead one is
// unknown; both are counted. But when the missing half follows within kInversionNs on another thread, the two stamps
// were only taken in the wrong order (the clocks of two processors differ, or one ran ahead of the instructions around
// its reading): the pair is put right and counted as reordered.
#pragma once

#include <tsl/robin_map.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "reader/block_map.h"
#include "reader/contexts.h"
#include "reader/profile.h"

namespace traceaf::reader {

class HeapModel {
 public:
  static constexpr uint64_t kInversionNs = 4000;

  HeapModel(Contexts& contexts, Profile& profile) : contexts_(contexts), profile_(profile) {}

  // An event about `address`, a birth with that type or a death, will come soon.
  void prefetch(uint64_t address, uint64_t type_id) const {
    live_.prefetch(address);
    contexts_.prefetch_type(type_id);
  }
  // All threads of the generation are in Contexts::threads.
  void begin_generation() { last_births_.resize(contexts_.threads.size()); }
  // `thread` is an index into Contexts::threads, `now` ns that never go back.
  void born(uint32_t thread, uint64_t address, uint64_t type_id, uint64_t now) {
    const TypeMeaning& type = meaning(type_id);
    const uint64_t size = type.size;
    Site& site = cells_[type.site].site;
    if (site.allocated.count == 0) site.first_birth_ns = now;
    site.last_birth_ns = now;
    add(site.allocated, size);
    add(profile_.allocated, size);
    add(contexts_.threads[thread].allocated, size);
    add(profile_.sizes[static_cast<size_t>(std::bit_width(size))], size);

    const auto [entry, is_new] = live_.insert(address);
    if (!is_new) [[unlikely]]
      replace(thread, address, entry->block, now);
    entry->block.size = size;
    entry->block.birth_ns = now;
    entry->block.site = type.site;
    entry->block.thread = thread;
    add_live(type.site, size, now);
    last_births_[thread] = {address, true};
    if (!held_.empty()) [[unlikely]]
      resolve_birth(thread, address, now);
  }
  void died(uint32_t thread, uint64_t address, uint64_t now) {
    ++profile_.freed.count;
    ++contexts_.threads[thread].freed.count;
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
    if (!doubtful_.empty()) [[unlikely]]
      doubtful_.erase(address);
  }
  // A block that was there when recording began.
  void exists(uint64_t address, uint64_t type_id, uint64_t now);

  // Recording began again after a gap. `snapshot`: the blocks still live follow as exists() in this generation;
  // otherwise the fate of all blocks known so far is unknown and they are no longer live.
  void restart(bool snapshot);
  void end_generation();
  // Whether every block live at the start of recording is known, so that an unknown death is a fault.
  void set_exact(bool exact) { exact_ = exact; }
  // Settles what was held back and moves sites and live blocks to the profile.
  void finish();

 private:
  static constexpr uint32_t kInherited = ~uint32_t{0};  // Block::thread of a block whose birth was not seen
  // Site::peak is what was live at the peak number `epoch`; it is brought up to date when the site changes next.
  struct SiteCell {
    Site site;
    uint64_t epoch = 0;
  };
  struct LastBirth {
    uint64_t address = 0;
    bool valid = false;
  };
  // Half of a pair that may have been inverted.
  struct Held {
    uint64_t address, time_ns;
    uint32_t thread;  // of the event
    bool birth;       // a birth at a live address (old: the block that was there), else an unknown death
    Block old;
  };

  static void add(Amount& amount, uint64_t bytes) {
    ++amount.count;
    amount.bytes += bytes;
  }
  // What the type means, with its site. An unknown type is a block of 0 bytes at the site without a name.
  const TypeMeaning& meaning(uint64_t type_id) {
    TypeMeaning* known = contexts_.type(type_id);
    if (known == nullptr) [[unlikely]] {
      ++profile_.unknown_types;
      known = &unknown_;
    }
    if (known->site == TypeMeaning::kNoSite) [[unlikely]]
      known->site = site_of(known->node, known->entry);
    return *known;
  }
  uint32_t site_of(uint32_t node, uint8_t entry);
  void touch(SiteCell& cell) {
    if (cell.epoch == epoch_) return;
    cell.site.peak = cell.site.live;
    cell.epoch = epoch_;
  }
  void add_live(uint32_t site, uint64_t size, uint64_t now) {
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
  void remove_live(uint32_t site, uint64_t size) {
    SiteCell& cell = cells_[site];
    touch(cell);
    --cell.site.live.count;
    cell.site.live.bytes -= size;
    --profile_.live.count;
    profile_.live.bytes -= size;
  }
  // The death of a block that thread `thread` freed; the block is no longer in live_.
  void count_death(uint32_t thread, uint64_t address, const Block& block, uint64_t now) {
    Site& site = cells_[block.site].site;
    add(site.freed, block.size);
    profile_.freed.bytes += block.size;
    contexts_.threads[thread].freed.bytes += block.size;
    if (block.thread == kInherited) [[unlikely]]
      return;
    const uint64_t lifetime = now - block.birth_ns;
    site.lifetime_ns += lifetime;
    add(profile_.lifetimes[static_cast<size_t>(std::bit_width(lifetime))], block.size);
    if (block.thread == thread && last_births_[thread].valid && last_births_[thread].address == address) {
      add(site.temporary, block.size);
      add(profile_.temporary, block.size);
      add(contexts_.threads[thread].temporary, block.size);
    }
  }
  void hold(const Held& held);
  void settle(uint64_t now, bool all);
  void give_up(const Held& held);
  bool resolve_death(uint32_t thread, uint64_t address, uint64_t now);
  void resolve_birth(uint32_t thread, uint64_t address, uint64_t now);
  void replace(uint32_t thread, uint64_t address, const Block& old, uint64_t now);

  Contexts& contexts_;
  Profile& profile_;
  BlockMap live_, before_gap_;
  std::vector<SiteCell> cells_;
  tsl::robin_map<uint64_t, uint32_t> site_ids_;  // node << 8 | entry
  std::vector<LastBirth> last_births_;           // by thread
  std::vector<Held> held_;
  // Where the blocks of old are not all known: the unknown death just before the birth of the block that lives there
  // now. It was counted as that of an older block; a second birth there proves that it was this block's.
  tsl::robin_map<uint64_t, Held> doubtful_;
  uint64_t epoch_ = 0;
  bool exact_ = true;
  TypeMeaning unknown_;
};

}  // namespace traceaf::reader
