// The heap as the events tell it: live blocks, and per site, per thread and in all what was born, died and was live at
// the highest moment. Memory grows with live blocks and sites.
//
// At one address births and deaths alternate. A birth at a live address ends the old block, a death at a dead one is
// unknown; both are counted. But when the missing half follows within kInversionNs on another thread, only the clocks
// of two processors disagreed: the pair is put right and counted as reordered.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <vector>

#include "reader/block_map.h"
#include "reader/contexts.h"
#include "reader/profile.h"

namespace traceaf::reader {

class HeapModel {
 public:
  static constexpr uint64_t kInversionNs = 1000;

  HeapModel(Contexts& contexts, Profile& profile) : contexts_(contexts), profile_(profile) {}

  // An event about `address` will come soon.
  void prefetch(uint64_t address) const { live_.prefetch(address); }
  // `thread` is an index into Contexts::threads, `now` ns that never go back.
  void born(uint32_t thread, uint64_t address, uint64_t type_id, uint64_t now);
  void died(uint32_t thread, uint64_t address, uint64_t now);
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

  const TypeMeaning& meaning(uint64_t type_id);
  uint32_t site_of(uint32_t node, uint8_t entry);
  void add_live(uint32_t site, uint64_t size, uint64_t now);
  void remove_live(uint32_t site, uint64_t size);
  void touch(SiteCell& cell) {
    if (cell.epoch == epoch_) return;
    cell.site.peak = cell.site.live;
    cell.epoch = epoch_;
  }
  void count_death(uint32_t thread, uint64_t address, const Block& block, uint64_t now);
  void hold(const Held& held);
  void settle(uint64_t now, bool all);
  void give_up(const Held& held);
  bool resolve_death(uint32_t thread, uint64_t address, uint64_t now);
  void resolve_birth(uint32_t thread, uint64_t address, uint64_t now);
  void replace(uint32_t thread, uint64_t address, Block& old, const Block& block, uint64_t now);

  Contexts& contexts_;
  Profile& profile_;
  BlockMap live_, before_gap_;
  std::vector<SiteCell> cells_;
  tsl::robin_map<uint64_t, uint32_t> site_ids_;  // node << 8 | entry
  std::vector<LastBirth> last_births_;           // by thread
  std::vector<Held> held_;
  uint64_t epoch_ = 0;
  bool exact_ = true;
  TypeMeaning unknown_;
};

}  // namespace traceaf::reader
