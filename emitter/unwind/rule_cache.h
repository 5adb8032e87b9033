// Code address -> rule, shared by all threads: an open-addressing hash that is only added to. Lookups take no lock and
// never wait; an addition that would have to wait is left out, and the rule is read from the tables again next time.
// Entries are never removed: a rule names its module, and users must see that the module is still loaded.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "emitter/unwind/rule.h"

namespace traceaf::emitter::unwind {

class RuleTable {
 public:
  // The rule of `key`, or an empty one.
  Rule find(uint64_t key) const {
    for (uint64_t i = key * kMultiplier >> shift_;; i = (i + 1) & mask_) {
      // Pairs with the release of the key in RuleCache::add: the value behind a key is there.
      const uint64_t seen = entries_[i].key.load(std::memory_order_acquire);
      if (seen == key) [[likely]]
        return {entries_[i].value.load(std::memory_order_relaxed)};
      if (seen == 0) return {};
    }
  }

 private:
  friend bool cache_rule(uint64_t key, Rule rule);
  static constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;

  struct Entry {
    std::atomic<uint64_t> key;    // 0: free; written once, under the lock
    std::atomic<uint64_t> value;  // replaced in one store when another module took the place of the code
  };
  static size_t bytes_for(uint32_t bits) { return sizeof(RuleTable) + (size_t{1} << bits) * sizeof(Entry); }
  static RuleTable* create(uint32_t bits);
  // False when full. Lock held.
  bool put(uint64_t key, Rule rule);
  RuleTable* grown() const;
  void retire();

  uint64_t mask_;
  uint32_t shift_;
  uint32_t used_;
  alignas(64) Entry entries_[];
};

// Key of the code at `ip`: a return address, or the exact pc of an interrupted frame, whose rules may differ.
inline uint64_t rule_key(uintptr_t ip, bool exact) { return ip | static_cast<uint64_t>(exact) << 63; }

// The table to search in a walk, nullptr before the first rule is known. It stays valid for ever; after it was replaced
// by a larger one it only finds less.
extern std::atomic<RuleTable*> g_rule_table;

// False when it was left out (someone else is adding, or memory ran out).
bool cache_rule(uint64_t key, Rule rule);

// In the child of a fork, where the thread that was adding is gone.
void rule_cache_after_fork();

}  // namespace traceaf::emitter::unwind
