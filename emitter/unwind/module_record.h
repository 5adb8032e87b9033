// What the unwinder knows of a module beyond the public emitter/modules.h: where its tables lie, which of its memory is
// mapped, and in which epoch the loader was last asked whether it is still there.
#pragma once

#include <atomic>
#include <cstdint>

#include "emitter/modules.h"
#include "emitter/unwind/bytes.h"

namespace traceaf::emitter::unwind {

// Part of the address space that a program header maps.
struct Segment {
  uintptr_t lo;
  uintptr_t hi;
  bool readable;
  bool executable;
};

inline constexpr uint32_t kMaxSegments = 8;

// What the program headers of an object in memory say.
struct ElfImage {
  Segment segments[kMaxSegments];
  uint32_t segment_count;
  uint32_t build_id_bytes;
  uint8_t build_id[32];
  uint64_t fingerprint;  // of headers and unwind tables; 0 when there is a build id, which says more
};

struct ModuleRecord {
  Module module;
  ElfImage image;
  uintptr_t eh_frame_hdr;             // 0: the object has none
  const char* loader_name;            // l_name as the loader had it
  std::atomic<const void*> link_map;  // changes when the same object is loaded again at the same place
  std::atomic<uint64_t> checked;      // epoch in which it was last seen to be loaded; written by any thread
  std::atomic<uint32_t> next;         // id of an older record in the same hash bucket

  // Memory from `at` to the end of its readable segment; empty when `at` is in none.
  Bytes readable_from(uintptr_t at) const {
    for (uint32_t i = 0; i < image.segment_count; ++i) {
      const Segment& s = image.segments[i];
      if (s.readable && at >= s.lo && at < s.hi) {
        return {reinterpret_cast<const uint8_t*>(at), reinterpret_cast<const uint8_t*>(s.hi), true};
      }
    }
    return {nullptr, nullptr, false};
  }
  bool executes(uintptr_t pc) const {
    for (uint32_t i = 0; i < image.segment_count; ++i) {
      const Segment& s = image.segments[i];
      if (s.executable && pc >= s.lo && pc < s.hi) return true;
    }
    return false;
  }
};

// Ids fit this many bits (a field of the cached rules).
inline constexpr unsigned kModuleIdBits = 20;

// nullptr for 0 or an unknown id. Records never move or go away.
ModuleRecord* module_record(uint32_t id);

// The epoch of a walk: a module whose `checked` equals it needs no question to the loader. Nothing equals kUnsettled,
// which holds while a library is being unloaded.
inline constexpr uint64_t kUnsettled = ~uint64_t{0};
extern std::atomic<uint64_t> g_module_epoch;  // raised (release) when the loader's answers may have changed
extern std::atomic<uint32_t> g_modules_unloading;
inline uint64_t settled_epoch() {
  // In this order: modules_unload_end raises the epoch first, so a zero here comes with the new epoch below.
  if (g_modules_unloading.load(std::memory_order_acquire) != 0) return kUnsettled;
  return g_module_epoch.load(std::memory_order_acquire);
}

// Reads the headers of the ELF object mapped at `start` (bias = load address - p_vaddr) and of its unwind tables. False
// when there is no ELF header. Every read is bounded by what the program headers map.
bool read_elf_image(uintptr_t start, uintptr_t bias, uintptr_t eh_frame_hdr, ElfImage* image);

// Finds the absolute path of the object mapped at `start` that the loader calls `loader_name` (empty: the main program)
// and writes it to `out` (without a NUL). Returns its length, 0 when nothing is known. `proc` is "/proc/self" outside
// tests; where it is missing the auxiliary vector and the loader's name have to do.
size_t find_module_path(const char* proc, uintptr_t start, const char* loader_name, char* out, size_t room);

}  // namespace traceaf::emitter::unwind
