// The recorder's clocks (see clock.h), with a minimal look-up of one symbol in the vDSO's dynamic section.
#include "emitter/clock.h"

#include <cpuid.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <cstring>

#include "emitter/sys.h"
#include "emitter/wire/rows.h"

namespace traceaf::emitter {
namespace {

using GetTime = int (*)(clockid_t, timespec*);
constinit GetTime g_vdso_gettime = nullptr;

GetTime find_vdso_gettime() {
  const auto base = static_cast<uintptr_t>(getauxval(AT_SYSINFO_EHDR));
  if (base == 0) return nullptr;
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(base);
  const auto* segments = reinterpret_cast<const Elf64_Phdr*>(base + header->e_phoff);
  const Elf64_Dyn* dynamic = nullptr;
  uintptr_t bias = base;
  for (int i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type == PT_LOAD && segments[i].p_offset == 0) bias = base - segments[i].p_vaddr;
    if (segments[i].p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const Elf64_Dyn*>(base + segments[i].p_offset);
  }
  if (dynamic == nullptr) return nullptr;
  const Elf64_Sym* symbols = nullptr;
  const char* strings = nullptr;
  const Elf32_Word* hash = nullptr;
  for (const Elf64_Dyn* d = dynamic; d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const Elf64_Sym*>(bias + d->d_un.d_ptr);
    if (d->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(bias + d->d_un.d_ptr);
    if (d->d_tag == DT_HASH) hash = reinterpret_cast<const Elf32_Word*>(bias + d->d_un.d_ptr);
  }
  if (symbols == nullptr || strings == nullptr || hash == nullptr) return nullptr;
  for (Elf32_Word i = 0; i < hash[1]; ++i) {  // hash[1]: number of chains = of symbols
    if (symbols[i].st_shndx != SHN_UNDEF && strcmp(strings + symbols[i].st_name, "__vdso_clock_gettime") == 0)
      return reinterpret_cast<GetTime>(bias + symbols[i].st_value);
  }
  return nullptr;
}

uint64_t read_clock(clockid_t clock) {
  timespec t{};
  if (g_vdso_gettime == nullptr || g_vdso_gettime(clock, &t) != 0) sys::call(SYS_clock_gettime, clock, sys::word(&t));
  return static_cast<uint64_t>(t.tv_sec) * 1000000000 + static_cast<uint64_t>(t.tv_nsec);
}

// ---- the processor's counter ---------------------------------------------------------------------------------------

// The counter and the clock at one moment.
struct Pair {
  uint64_t count;
  uint64_t ns;
};

// The rate is taken over at least the first time (an error of 2e-5 from pairs that are 20 ns wrong) and at most about
// twice the second (so that it follows what NTP does to the clock).
constexpr uint64_t kShortBaselineNs = 1000 * 1000;
constexpr uint64_t kLongBaselineNs = 5000ull * 1000 * 1000;
// Further off than this, the counter does something that no scale describes (a suspend, a move to another machine).
constexpr uint64_t kTrustNs = 10 * 1000 * 1000;
constexpr uint64_t kPauseTicks = 60 * kClockFrequency;

constinit bool g_counter_is_good = false;
constinit Pair g_old = {0, 0};     // the baseline's begin
constinit Pair g_middle = {0, 0};  // its next begin
constinit std::atomic<bool> g_calibrating{false};

Pair read_pair() {
  Pair best{};
  uint64_t width = ~uint64_t{0};
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = __rdtsc();
    const uint64_t ns = read_clock(CLOCK_MONOTONIC);
    const uint64_t after = __rdtsc();
    if (after - before < width) {
      width = after - before;
      best = {before + width / 2, ns};
    }
  }
  return best;
}

// The processor says that the counter runs at one rate always, and the kernel found the processors' counters equal.
bool counter_is_good() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kPowerLeaf = 0x80000007, kInvariant = 1u << 8;
  if (__get_cpuid(kPowerLeaf, &a, &b, &c, &d) == 0 || (d & kInvariant) == 0) return false;
  constexpr char kPath[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  const long fd = sys::open(kPath, O_RDONLY | O_CLOEXEC);
  if (sys::failed(fd)) return false;
  char text[8] = {};
  const long n = sys::read(static_cast<int>(fd), text, sizeof(text));
  sys::close(static_cast<int>(fd));
  return n == 4 && memcmp(text, "tsc\n", 4) == 0;
}

// Ticks per count, times 2^64, or 0 when it can't be known yet.
uint64_t ratio_since(const Pair& begin, const Pair& now) {
  if (now.ns < begin.ns + kShortBaselineNs || now.count <= begin.count) return 0;
  constexpr unsigned kShift = 64 - 6;
  static_assert(kNsPerTick == 1 << 6);
  return static_cast<uint64_t>((static_cast<unsigned __int128>(now.ns - begin.ns) << kShift) /
                               (now.count - begin.count));
}

}  // namespace

ClockScale g_clock_scale[2] = {};

void clock_init() {
  g_vdso_gettime = find_vdso_gettime();
  g_counter_is_good = counter_is_good();
  if (g_counter_is_good) g_old = g_middle = read_pair();
}

uint64_t clock_kind() { return g_counter_is_good ? wire::kClockCounter : wire::kClockMonotonic; }
uint64_t clock_ns() { return read_clock(CLOCK_MONOTONIC); }
uint64_t clock_wall_ns() { return read_clock(CLOCK_REALTIME); }

uint64_t clock_begin_generation(uint64_t gen) {
  ClockScale& scale = g_clock_scale[gen & 1];
  const ClockScale& last = g_clock_scale[(gen - 1) & 1];
  scale.ratio.store(0, std::memory_order_relaxed);
  if (!g_counter_is_good) return clock_ticks();
  const Pair now = read_pair();
  scale.count = now.count;
  scale.ticks = now.ns / kNsPerTick;
  uint64_t ahead_ns = 0;
  const uint64_t last_ratio = last.ratio.load(std::memory_order_acquire);
  if (last_ratio != 0) {
    const auto passed = static_cast<unsigned __int128>(now.count - last.count) * last_ratio >> 64;
    const uint64_t ticks = last.ticks + static_cast<uint64_t>(passed);
    // After a long pause the last scale may be far off, and nobody has used it for a while.
    if (ticks > scale.ticks && passed < kPauseTicks) {
      ahead_ns = (ticks - scale.ticks) * kNsPerTick;
      scale.ticks = ticks;  // no step back
    }
  }
  if (ahead_ns > kTrustNs) {
    // The vDSO from here on. The threads' stamps stand still until it has caught up.
    g_counter_is_good = false;
    return clock_ticks();
  }
  const uint64_t ratio = ratio_since(g_old, now);
  // What it is ahead is lost again within a second.
  const auto slower = static_cast<uint64_t>(static_cast<unsigned __int128>(ratio) * ahead_ns / 1000000000);
  scale.ratio.store(ratio - slower, std::memory_order_release);
  if (now.ns - g_middle.ns > kLongBaselineNs) {
    g_old = g_middle;
    g_middle = now;
  }
  return scale.ticks;
}

void clock_calibrate(uint64_t gen) {
  ClockScale& scale = g_clock_scale[gen & 1];
  if (!g_counter_is_good || scale.ratio.load(std::memory_order_relaxed) != 0) return;
  if (g_calibrating.exchange(true, std::memory_order_acquire)) return;
  if (scale.ratio.load(std::memory_order_relaxed) == 0) {
    const Pair now = read_pair();
    scale.count = now.count;
    scale.ticks = now.ns / kNsPerTick;
    scale.ratio.store(ratio_since(g_old, now), std::memory_order_release);
  }
  g_calibrating.store(false, std::memory_order_release);
}

}  // namespace traceaf::emitter
