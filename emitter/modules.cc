// The table of ELF objects (see modules.h): an insert-only hash of load addresses in front of records that never move.
#include "emitter/modules.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sys/auxv.h>

#include <cstring>

#include "emitter/lock.h"
#include "emitter/region.h"
#include "emitter/unwind/module_record.h"
#include "emitter/unwind/registered_frames.h"
#include "emitter/unwind/rule_cache.h"
#include "emitter/wire/rows.h"

namespace traceaf::emitter {

constinit std::atomic<uint64_t> unwind::g_module_epoch{1};
constinit std::atomic<uint32_t> unwind::g_modules_unloading{0};

using unwind::ElfImage;
using unwind::ModuleRecord;

namespace {

constexpr uint32_t kChunkBits = 7;
constexpr uint32_t kChunk = 1u << kChunkBits;
constexpr uint32_t kMaxModules = 1u << unwind::kModuleIdBits;
constexpr uint32_t kBuckets = 4096;
constexpr size_t kMaxPath = 4096;
constexpr size_t kTextBlock = size_t{64} << 10;

// Written under g_lock by release stores; read by any thread with acquire.
std::atomic<ModuleRecord*> g_chunks[kMaxModules / kChunk];
std::atomic<uint32_t> g_buckets[kBuckets];  // newest id whose start hashes here
std::atomic<uint32_t> g_count{0};

Mutex g_lock;                          // guards insertion and the scratch below
std::atomic<int> g_lock_owner{0};      // tid of its holder
std::atomic<bool> g_lock_lost{false};  // nobody got it in a whole round of patience
char* g_text = nullptr;                // room for paths
size_t g_text_left = 0;
ElfImage g_image;
char g_path[kMaxPath];

// A bounded wait for g_lock: a signal handler that interrupted the holder, or a holder that never comes back (a
// longjmp out of a handler), must not hang the program. Without the lock the pc counts as outside every module, and the
// stack is cut there and marked.
class TableLock {
 public:
  TableLock() {
    const int self = sys::tid();
    const int patience = g_lock_lost.load(std::memory_order_relaxed) ? 1 : kTries;
    for (int tries = 0; tries < patience; ++tries) {
      if (g_lock.try_lock()) {
        g_lock_owner.store(self, std::memory_order_relaxed);
        g_lock_lost.store(false, std::memory_order_relaxed);
        held_ = true;
        return;
      }
      if (g_lock_owner.load(std::memory_order_relaxed) == self) return;
      if (tries < kSpins) {
        sys::yield();
      } else {
        sys::sleep_ns(100'000);
      }
    }
    g_lock_lost.store(true, std::memory_order_relaxed);
  }
  ~TableLock() {
    if (!held_) return;
    g_lock_owner.store(0, std::memory_order_relaxed);
    g_lock.unlock();
  }
  TableLock(const TableLock&) = delete;
  TableLock& operator=(const TableLock&) = delete;
  bool held() const { return held_; }

 private:
  static constexpr int kSpins = 100;
  static constexpr int kTries = kSpins + 10'000;
  bool held_ = false;
};

struct Found {
  uintptr_t start;
  uintptr_t end;
  const link_map* map;
  uintptr_t eh_frame_hdr;
};

__attribute__((noinline)) bool ask_loader(uintptr_t pc, Found* found) {
  dl_find_object answer;
  if (_dl_find_object(reinterpret_cast<void*>(pc), &answer) != 0) return false;
  *found = {reinterpret_cast<uintptr_t>(answer.dlfo_map_start), reinterpret_cast<uintptr_t>(answer.dlfo_map_end),
            answer.dlfo_link_map, reinterpret_cast<uintptr_t>(answer.dlfo_eh_frame)};
  return true;
}

std::atomic<uint32_t>& bucket_of(uintptr_t start) { return g_buckets[(start >> 12) * 0x9e3779b97f4a7c15u >> 52]; }

std::atomic_ref<uint32_t> flags_of(ModuleRecord& record) { return std::atomic_ref<uint32_t>(record.module.flags); }

void mark_unloaded(ModuleRecord& record) {
  flags_of(record).fetch_or(wire::kModuleUnloaded, std::memory_order_relaxed);
}

bool same_object(const ModuleRecord& record, const Found& found, const ElfImage& image) {
  return record.module.start == found.start && record.module.end == found.end &&
         record.eh_frame_hdr == found.eh_frame_hdr && record.image.build_id_bytes == image.build_id_bytes &&
         std::memcmp(record.image.build_id, image.build_id, image.build_id_bytes) == 0 &&
         record.image.fingerprint == image.fingerprint && std::strcmp(record.loader_name, found.map->l_name) == 0;
}

// A NUL-terminated copy that stays, or nullptr when memory ran out. Lock held. (Not a Region: its own lock could be
// left held in the child of a fork.)
const char* keep_text(const char* text, size_t length) {
  if (length + 1 > g_text_left) {
    if (length + 1 > kTextBlock) return nullptr;
    auto* block = static_cast<char*>(own_map(kTextBlock));
    if (block == nullptr) return nullptr;
    g_text = block;
    g_text_left = kTextBlock;
  }
  char* kept = g_text;
  std::memcpy(kept, text, length);
  g_text += length + 1;
  g_text_left -= length + 1;
  return kept;
}

// Fills a record for `found`, whose headers are in g_image. nullptr when memory or ids ran out. Lock held.
__attribute__((noinline)) ModuleRecord* new_record(const Found& found) {
  const uint32_t id = g_count.load(std::memory_order_relaxed) + 1;
  if (id >= kMaxModules) return nullptr;
  auto& chunk = g_chunks[id >> kChunkBits];
  if (chunk.load(std::memory_order_relaxed) == nullptr) {
    auto* fresh = static_cast<ModuleRecord*>(own_map(kChunk * sizeof(ModuleRecord)));
    if (fresh == nullptr) return nullptr;
    chunk.store(fresh, std::memory_order_release);
  }
  const char* loader_name = found.map->l_name == nullptr ? "" : found.map->l_name;
  uint32_t flags = 0;
  size_t path_bytes = 0;
  const int saved_errno = errno;
  const uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);  // only reads the vector that the kernel left on the stack
  errno = saved_errno;
  if (found.start == vdso) {
    flags |= wire::kModuleVdso;
    path_bytes = 6;
    std::memcpy(g_path, "[vdso]", path_bytes);
  } else {
    if (loader_name[0] == 0 && found.map->l_prev == nullptr) flags |= wire::kModuleMain;
    path_bytes = unwind::find_module_path("/proc/self", found.start, loader_name, g_path, kMaxPath - 1);
  }
  ModuleRecord& record = chunk.load(std::memory_order_relaxed)[id & (kChunk - 1)];
  const char* path = keep_text(g_path, path_bytes);
  record.loader_name = keep_text(loader_name, std::strlen(loader_name));
  if (path == nullptr || record.loader_name == nullptr) return nullptr;
  Module& module = record.module;
  module.id = id;
  module.flags = flags;
  module.start = found.start;
  module.end = found.end;
  module.bias = found.map->l_addr;
  std::memcpy(module.build_id, g_image.build_id, sizeof(module.build_id));
  module.build_id_bytes = g_image.build_id_bytes;
  module.path = path;
  module.path_bytes = static_cast<uint32_t>(path_bytes);
  module.row_generation.store(0, std::memory_order_relaxed);
  record.image = g_image;
  record.eh_frame_hdr = found.eh_frame_hdr;
  record.link_map.store(found.map, std::memory_order_relaxed);
  return &record;
}

// The record of `found`, made or re-identified under the lock.
__attribute__((noinline)) uint32_t identify(const Found& found, uint64_t epoch) {
  const TableLock lock;
  if (!lock.held()) return 0;
  if (!unwind::read_elf_image(found.start, found.map->l_addr, found.eh_frame_hdr, &g_image)) g_image = {};
  auto& bucket = bucket_of(found.start);
  ModuleRecord* match = nullptr;
  for (uint32_t id = bucket.load(std::memory_order_relaxed); id != 0;) {
    ModuleRecord& record = *unwind::module_record(id);
    id = record.next.load(std::memory_order_relaxed);
    if (match == nullptr && same_object(record, found, g_image)) {
      match = &record;
    } else if (record.module.start < found.end && found.start < record.module.end) {
      mark_unloaded(record);
    }
  }
  if (match != nullptr) {
    match->link_map.store(found.map, std::memory_order_relaxed);
    flags_of(*match).fetch_and(~static_cast<uint32_t>(wire::kModuleUnloaded), std::memory_order_relaxed);
    match->checked.store(epoch, std::memory_order_release);
    return match->module.id;
  }
  ModuleRecord* fresh = new_record(found);
  if (fresh == nullptr) return 0;
  fresh->checked.store(epoch, std::memory_order_relaxed);
  fresh->next.store(bucket.load(std::memory_order_relaxed), std::memory_order_relaxed);
  g_count.store(fresh->module.id, std::memory_order_release);
  bucket.store(fresh->module.id, std::memory_order_release);
  return fresh->module.id;
}

}  // namespace

namespace unwind {

ModuleRecord* module_record(uint32_t id) {
  if (id == 0 || id >= kMaxModules) return nullptr;
  ModuleRecord* chunk = g_chunks[id >> kChunkBits].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &chunk[id & (kChunk - 1)];
}

}  // namespace unwind

uint32_t module_of(uintptr_t pc) {
  const uint64_t epoch = unwind::settled_epoch();
  Found found;
  if (!ask_loader(pc, &found)) return 0;
  for (uint32_t id = bucket_of(found.start).load(std::memory_order_acquire); id != 0;) {
    const ModuleRecord& record = *unwind::module_record(id);
    if (record.module.start == found.start && record.checked.load(std::memory_order_acquire) == epoch &&
        record.module.end == found.end && record.link_map.load(std::memory_order_relaxed) == found.map) {
      return id;
    }
    id = record.next.load(std::memory_order_relaxed);
  }
  // While a library is unloaded what was found holds for this call only: epoch 0 never is the current one.
  return identify(found, epoch == unwind::kUnsettled ? 0 : epoch);
}

Module* module_by_id(uint32_t id) {
  if (id > g_count.load(std::memory_order_acquire)) return nullptr;
  ModuleRecord* record = unwind::module_record(id);
  return record == nullptr ? nullptr : &record->module;
}

uint32_t module_count() { return g_count.load(std::memory_order_acquire); }

void modules_invalidate() {
  unwind::g_module_epoch.fetch_add(1, std::memory_order_acq_rel);
  const TableLock lock;
  if (!lock.held()) return;  // the flags come later, at the next use of an address; nothing else is lost
  const uint32_t count = g_count.load(std::memory_order_relaxed);
  for (uint32_t id = 1; id <= count; ++id) {
    ModuleRecord& record = *unwind::module_record(id);
    Found found;
    if ((flags_of(record).load(std::memory_order_relaxed) & wire::kModuleUnloaded) != 0) continue;
    if (!ask_loader(record.module.start, &found) || found.start != record.module.start ||
        found.end != record.module.end || found.map != record.link_map.load(std::memory_order_relaxed)) {
      mark_unloaded(record);
    }
  }
}

void modules_unload_begin() {
  unwind::g_modules_unloading.fetch_add(1, std::memory_order_acq_rel);
  modules_invalidate();
}

void modules_unload_end() {
  modules_invalidate();
  // Never below zero: in the child of a fork inside dlclose the begin is already forgotten.
  uint32_t now = unwind::g_modules_unloading.load(std::memory_order_relaxed);
  while (now != 0 && !unwind::g_modules_unloading.compare_exchange_weak(now, now - 1, std::memory_order_acq_rel)) {
  }
}

uint64_t modules_epoch() { return unwind::g_module_epoch.load(std::memory_order_acquire); }

void modules_after_fork() {
  // The child has one thread; a lock held by another thread of the parent at the fork will never be released.
  g_lock_owner.store(0, std::memory_order_relaxed);
  g_lock.reset();
  unwind::g_modules_unloading.store(0, std::memory_order_relaxed);
  unwind::g_module_epoch.fetch_add(1, std::memory_order_relaxed);
  unwind::rule_cache_after_fork();
  unwind::registered_frames_after_fork();
  const uint32_t count = module_count();
  for (uint32_t id = 1; id <= count; ++id) {
    unwind::module_record(id)->module.row_generation.store(0, std::memory_order_relaxed);
  }
}

}  // namespace traceaf::emitter
