// The copied tables of registered frames (see registered_frames.h): an array of code ranges, sorted and without
// overlaps, in two buffers. A change builds the next version in the buffer that is not in use and then publishes it; a
// walk that meets two changes notices from g_building that its buffer was written to, and begins again.
#include "emitter/unwind/registered_frames.h"

#include <dwarf.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "emitter/lock.h"
#include "emitter/region.h"
#include "emitter/unwind/cfi.h"

namespace traceaf::emitter::unwind {

namespace {

constexpr uint32_t kMaxRanges = 1u << 16;  // further registrations are not kept: their frames are guessed
constexpr size_t kMaxSection = size_t{16} << 20;
constexpr uintptr_t kPage = 4096;
constexpr unsigned kTries = 8;

// The copy of one description. Cells come in three sizes and are used again; their memory is never unmapped.
struct Kept {
  Description description;  // its programs lie in `bytes`
  const void* section;      // as registered
  Kept* next;               // in a list of free or dropped ones
  uint32_t size_class;
  uint8_t bytes[];
};
constexpr size_t kCellBytes[] = {192, 512, 2048};
constexpr unsigned kClasses = 3;
constexpr size_t kPoolBlock = size_t{64} << 10, kMaxPool = size_t{24} << 20;

struct Range {
  uintptr_t begin, end;
  Kept* kept;
};

// Version v is in buffer v & 1. Both numbers are stored by the holder of g_changing only; walks read them. g_building
// is raised before anything is written that a walk of an older version may look at, and not lowered when a change
// fails.
std::atomic<uint64_t> g_version{0};
std::atomic<uint64_t> g_building{0};
std::atomic<uint32_t> g_count[2];  // ranges in the buffer; stored before g_version (release), read after it (acquire)
std::atomic<Range*> g_ranges[2];   // stored once

Mutex g_changing;  // guards what follows; never waited for by a walk
Range* g_fresh = nullptr;
Kept* g_free[kClasses];
uint8_t* g_pool = nullptr;
size_t g_pool_left = 0, g_pool_total = 0;
const void* g_newest_section = nullptr;  // registered last and still there
ModuleRecord g_section;                  // the memory of the section being read, as the reader of entries wants it

bool make_buffers() {
  if (g_fresh != nullptr) return true;
  for (auto& buffer : g_ranges) {
    if (buffer.load(std::memory_order_relaxed) != nullptr) continue;
    auto* memory = static_cast<Range*>(own_map(kMaxRanges * sizeof(Range)));
    if (memory == nullptr) return false;
    buffer.store(memory, std::memory_order_release);
  }
  g_fresh = static_cast<Range*>(own_map(kMaxRanges * sizeof(Range)));
  return g_fresh != nullptr;
}

Kept* new_kept(size_t bytes) {
  unsigned size_class = 0;
  while (size_class < kClasses && kCellBytes[size_class] < sizeof(Kept) + bytes) ++size_class;
  if (size_class == kClasses) return nullptr;
  Kept* kept = g_free[size_class];
  if (kept != nullptr) {
    g_free[size_class] = kept->next;
    return kept;
  }
  const size_t cell = kCellBytes[size_class];
  if (g_pool_left < cell) {
    if (g_pool_total >= kMaxPool) return nullptr;
    auto* block = static_cast<uint8_t*>(own_map(kPoolBlock));
    if (block == nullptr) return nullptr;
    g_pool_total += kPoolBlock;
    g_pool_left = kPoolBlock;
    g_pool = block;
  }
  kept = reinterpret_cast<Kept*>(g_pool);
  g_pool += cell;
  g_pool_left -= cell;
  kept->size_class = size_class;
  return kept;
}

void give_back(Kept* list) {
  while (list != nullptr) {
    Kept* const kept = list;
    list = kept->next;
    kept->next = g_free[kept->size_class];
    g_free[kept->size_class] = kept;
  }
}

void drop(Kept* kept, Kept** list) {
  kept->next = *list;
  *list = kept;
}

Kept* copy_of(const Description& description, const void* section) {
  const auto initial = static_cast<size_t>(description.initial.end - description.initial.at);
  const auto instructions = static_cast<size_t>(description.instructions.end - description.instructions.at);
  Kept* kept = new_kept(initial + instructions);
  if (kept == nullptr) return nullptr;
  std::memcpy(kept->bytes, description.initial.at, initial);
  std::memcpy(kept->bytes + initial, description.instructions.at, instructions);
  kept->description = description;
  kept->description.initial = {kept->bytes, kept->bytes + initial};
  kept->description.instructions = {kept->bytes + initial, kept->bytes + initial + instructions};
  // Only DW_CFA_set_loc needs the encoding from here on. Relative to its own place it would be wrong in a copy.
  if ((description.encoding & 0x70) != DW_EH_PE_absptr) kept->description.encoding = DW_EH_PE_omit;
  kept->section = section;
  return kept;
}

bool readable(uintptr_t from, uintptr_t to) {
  for (uintptr_t page = from & ~(kPage - 1); page < to; page += kPage)
    if (!probe_readable(page)) return false;
  return true;
}

uint32_t word_at(uintptr_t at) {
  uint32_t value = 0;
  std::memcpy(&value, reinterpret_cast<const void*>(at), sizeof(value));
  return value;
}

// Sets g_section to the entries from `begin` to their terminator. Where the first is no common entry it is one
// description alone, as LLVM's libunwind has them. False when there is nothing, or it cannot be read.
bool find_section(uintptr_t begin) {
  uintptr_t end = begin, lo = begin;
  for (;;) {
    if (end - begin > kMaxSection || !readable(end, end + 4)) return false;
    const uint32_t bytes = word_at(end);
    if (bytes == 0) break;
    if (bytes < 4 || bytes >= 0xfffffff0 || !readable(end, end + 4 + bytes)) return false;
    const uint32_t distance = word_at(end + 4);
    const bool alone = end == begin && distance != 0;
    end += 4 + uintptr_t{bytes};
    if (!alone) continue;
    if (distance > begin || !readable(begin + 4 - distance, begin)) return false;
    lo = begin + 4 - distance;
    break;
  }
  g_section.image.segments[0] = {lo, end, true, false};
  g_section.image.segment_count = 1;
  return end != begin;
}

// Copies the descriptions of the section that begins at `begin` to g_fresh, sorted; those of code in ELF objects, which
// have their tables at hand, are left out. Returns how many there are.
uint32_t read_section(const void* begin) {
  uint32_t count = 0;
  if (!find_section(reinterpret_cast<uintptr_t>(begin))) return 0;
  for (auto at = reinterpret_cast<uintptr_t>(begin); at != 0 && count < kMaxRanges;) {
    Description description;
    uintptr_t bytes = 0;
    const bool is_description = read_entry(g_section, at, &description, &bytes, &at);
    if (!is_description || bytes == 0 || description.begin == 0 || description.begin + bytes < bytes) continue;
    if (module_of(description.begin) != 0) continue;
    Kept* kept = copy_of(description, begin);
    if (kept != nullptr) g_fresh[count++] = {description.begin, description.begin + bytes, kept};
  }
  std::sort(g_fresh, g_fresh + count, [](const Range& a, const Range& b) { return a.begin < b.begin; });
  return count;
}

// Raised before a change writes anything; the fence keeps the writes behind it in the eyes of a walk that sees one.
void begin_change() {
  g_building.store(g_version.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
}

void publish(uint32_t count) {
  const uint64_t version = g_version.load(std::memory_order_relaxed) + 1;
  g_count[version & 1].store(count, std::memory_order_relaxed);
  g_version.store(version, std::memory_order_release);
}

// Merges `count` ranges of g_fresh with the present ones into the other buffer. A present one that overlaps a fresh one
// is stale: its code was replaced and never deregistered.
bool add_fresh(uint32_t count) {
  const uint64_t version = g_version.load(std::memory_order_relaxed);
  const Range* old = g_ranges[version & 1].load(std::memory_order_relaxed);
  const uint32_t old_count = g_count[version & 1].load(std::memory_order_relaxed);
  Range* out = g_ranges[(version + 1) & 1].load(std::memory_order_relaxed);
  Kept* dropped = nullptr;
  uint32_t used = 0, o = 0, f = 0;
  if (old_count + count > kMaxRanges) return false;
  while (o < old_count || f < count) {
    if (f < count && (o == old_count || old[o].end > g_fresh[f].begin)) {
      for (; o < old_count && old[o].begin < g_fresh[f].end; ++o) drop(old[o].kept, &dropped);
      if (used != 0 && out[used - 1].end > g_fresh[f].begin) {  // malformed: two descriptions of one section overlap
        drop(g_fresh[f++].kept, &dropped);
      } else {
        out[used++] = g_fresh[f++];
      }
    } else {
      out[used++] = old[o++];
    }
  }
  publish(used);
  give_back(dropped);
  return true;
}

// Looks up and steps in version `version`; true when a table covers `pc`. The result holds only if the version was not
// overwritten meanwhile.
bool step_in(uint64_t version, uintptr_t pc, Registers* regs, Memory* memory, bool* signal_frame, Outcome* outcome) {
  const Range* ranges = g_ranges[version & 1].load(std::memory_order_acquire);
  uint32_t lo = 0, hi = g_count[version & 1].load(std::memory_order_relaxed);
  if (ranges == nullptr || hi > kMaxRanges) return false;
  while (lo < hi) {
    const uint32_t middle = lo + (hi - lo) / 2;
    if (ranges[middle].end <= pc) {
      lo = middle + 1;
    } else {
      hi = middle;
    }
  }
  if (lo == kMaxRanges) return false;
  const Range range = ranges[lo];
  std::atomic_thread_fence(std::memory_order_acquire);
  // Before the pointer is followed: it is whole, and what it leads to is a description.
  if (g_building.load(std::memory_order_relaxed) > version + 1) return false;
  if (lo >= g_count[version & 1].load(std::memory_order_relaxed) || pc < range.begin || pc >= range.end) return false;
  const Description description = range.kept->description;
  std::atomic_thread_fence(std::memory_order_acquire);
  if (g_building.load(std::memory_order_relaxed) > version + 1) return false;
  Row row;
  if (!find_row(description, pc, &row)) return false;
  *signal_frame = row.signal_frame;
  *outcome = apply(row, memory, regs);
  return true;
}

}  // namespace

__attribute__((noinline)) bool step_registered(uintptr_t pc, Registers* regs, Memory* memory, bool* signal_frame,
                                               Outcome* outcome) {
  for (unsigned tries = 0; tries < kTries; ++tries) {
    const uint64_t version = g_version.load(std::memory_order_acquire);
    if (g_count[version & 1].load(std::memory_order_relaxed) == 0 && g_building.load() <= version + 1) return false;
    Registers caller = *regs;
    const bool found = step_in(version, pc, &caller, memory, signal_frame, outcome);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (g_building.load(std::memory_order_relaxed) > version + 1) continue;
    if (found && *outcome == Outcome::kStepped) *regs = caller;
    return found;
  }
  return false;  // changed without end: the frame is guessed, and marked
}

uint32_t registered_ranges() { return g_count[g_version.load(std::memory_order_acquire) & 1].load(); }

void registered_frames_after_fork() { g_changing.reset(); }

void frames_registered(const void* section) {
  const Locked lock(g_changing);
  // libgcc's __register_frame calls __register_frame_info, which is hooked too.
  if (section == nullptr || section == g_newest_section || !make_buffers()) return;
  begin_change();
  const uint32_t count = read_section(section);
  if (count != 0 && add_fresh(count)) {
    g_newest_section = section;
    return;
  }
  for (uint32_t i = 0; i < count; ++i) {
    g_fresh[i].kept->next = nullptr;
    give_back(g_fresh[i].kept);
  }
}

void frames_deregistered(const void* section) {
  const Locked lock(g_changing);
  if (section == g_newest_section) g_newest_section = nullptr;
  const uint64_t version = g_version.load(std::memory_order_relaxed);
  const Range* old = g_ranges[version & 1].load(std::memory_order_relaxed);
  const uint32_t old_count = g_count[version & 1].load(std::memory_order_relaxed);
  const auto is_its = [section](const Range& range) { return range.kept->section == section; };
  if (old_count == 0 || std::none_of(old, old + old_count, is_its)) return;
  begin_change();
  Range* out = g_ranges[(version + 1) & 1].load(std::memory_order_relaxed);
  Kept* dropped = nullptr;
  uint32_t used = 0;
  for (uint32_t i = 0; i < old_count; ++i) {
    if (is_its(old[i])) {
      drop(old[i].kept, &dropped);
    } else {
      out[used++] = old[i];
    }
  }
  publish(used);
  give_back(dropped);
}

}  // namespace traceaf::emitter::unwind
