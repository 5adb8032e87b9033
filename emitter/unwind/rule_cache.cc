// Growth and insertion of the rule cache (see rule_cache.h).
#include "emitter/unwind/rule_cache.h"

#include "emitter/lock.h"
#include "emitter/region.h"
#include "emitter/sys.h"
#include "emitter/wire/rows.h"

namespace traceaf::emitter::unwind {

namespace {
constexpr uint32_t kFirstBits = 13;  // 128 KiB, enough for most programs
constexpr uint32_t kLastBits = 22;   // 64 MiB: two million call sites; further ones are not cached
constexpr uintptr_t kPage = 4096;
Mutex g_adding;  // only ever tried
}  // namespace

// Stored (release) when a table is complete; walks load it (acquire) once.
std::atomic<RuleTable*> g_rule_table{nullptr};

RuleTable* RuleTable::create(uint32_t bits) {
  auto* table = static_cast<RuleTable*>(own_map(bytes_for(bits)));
  if (table == nullptr) return nullptr;
  table->mask_ = (uint64_t{1} << bits) - 1;
  table->shift_ = 64 - bits;
  return table;
}

bool RuleTable::put(uint64_t key, Rule rule) {
  if (used_ * uint64_t{2} > mask_) return false;
  for (uint64_t i = key * kMultiplier >> shift_;; i = (i + 1) & mask_) {
    Entry& entry = entries_[i];
    const uint64_t seen = entry.key.load(std::memory_order_relaxed);
    if (seen != key && seen != 0) continue;
    entry.value.store(rule.bits, std::memory_order_relaxed);
    if (seen == 0) {
      entry.key.store(key, std::memory_order_release);
      ++used_;
    }
    return true;
  }
}

RuleTable* RuleTable::grown() const {
  const uint32_t bits = 64 - shift_ + 1;
  if (bits > kLastBits) return nullptr;
  RuleTable* larger = create(bits);
  if (larger == nullptr) return nullptr;
  for (uint64_t i = 0; i <= mask_; ++i) {
    const uint64_t key = entries_[i].key.load(std::memory_order_relaxed);
    const Rule rule{entries_[i].value.load(std::memory_order_relaxed)};
    if (key == 0 || !rule) continue;
    const ModuleRecord* record = module_record(rule.module());
    if (record == nullptr) continue;
    const auto& flags = record->module.flags;
    if ((std::atomic_ref<uint32_t>(const_cast<uint32_t&>(flags)).load(std::memory_order_relaxed) &
         wire::kModuleUnloaded) == 0) {
      larger->put(key, rule);
    }
  }
  return larger;
}

// Walks that still search this table see its pages turn into free entries and read the tables of the modules instead.
// The first page holds the header and keeps its (true) entries; the address space stays taken.
void RuleTable::retire() {
  const uintptr_t second = reinterpret_cast<uintptr_t>(this) + kPage;
  const uintptr_t end = reinterpret_cast<uintptr_t>(this) + bytes_for(64 - shift_);
  sys::advise(reinterpret_cast<void*>(second), (end - second + kPage - 1) & ~(kPage - 1), MADV_DONTNEED);
}

bool cache_rule(uint64_t key, Rule rule) {
  // A signal handler may have interrupted an addition on this very thread.
  if (!g_adding.try_lock()) return false;
  RuleTable* table = g_rule_table.load(std::memory_order_relaxed);
  if (table == nullptr) {
    table = RuleTable::create(kFirstBits);
    if (table != nullptr) g_rule_table.store(table, std::memory_order_release);
  }
  bool added = table != nullptr && table->put(key, rule);
  if (table != nullptr && !added) {
    RuleTable* larger = table->grown();
    if (larger != nullptr) {
      added = larger->put(key, rule);
      g_rule_table.store(larger, std::memory_order_release);
      table->retire();
    }
  }
  g_adding.unlock();
  return added;
}

void rule_cache_after_fork() { g_adding.reset(); }

}  // namespace traceaf::emitter::unwind
