// Tags and enumerations of our own tables (see rows.inc).
#pragma once

#include <cstdint>
#include <string_view>

namespace traceaf::wire {

// g++ takes the enumerator Row::kCounters for a shadow of wire::kCounters.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class Row : uint8_t {
#define TRACEAF_ROW(tag, name, fields) k##name = tag,
#include "emitter/wire/rows.inc"
#undef TRACEAF_ROW
};
#pragma GCC diagnostic pop

struct RowSpec {
  uint8_t tag;
  std::string_view name;
  std::string_view fields;
};

inline constexpr RowSpec kRows[] = {
#define TRACEAF_ROW(tag, name, fields) {tag, #name, fields},
#include "emitter/wire/rows.inc"
#undef TRACEAF_ROW
};

// What the stamps were read from. Both count CLOCK_MONOTONIC in units of the generation's Frequency.
inline constexpr uint64_t kClockMonotonic = 0;  // the clock itself
inline constexpr uint64_t kClockCounter = 1;    // the processor's time stamp counter, scaled

// Root nodes of the calling-context tree: how the outermost recorded frame of a stack was reached.
enum class NodeRoot : uint32_t {
  kNone = 0,       // no stack was taken
  kComplete = 1,   // the walk ended at the thread's entry
  kDepthCap = 2,   // cut at the option `depth`
  kNoCfi = 3,      // cut at code without unwind information
  kUnreadable = 4  // cut because a frame pointed outside readable stack
};
inline constexpr uint32_t kFirstNode = 8;  // ids below are reserved for roots

enum class MarkerKind : uint8_t { kOn = 1, kOff = 2, kStandby = 3, kFork = 4, kExec = 5, kUser = 6 };

enum class SpanSource : uint8_t {
  kUnknown = 0,
  kBrk = 1,        // the main heap below the program break
  kArena = 2,      // glibc's 64 MiB-aligned heap of a further arena
  kMmapChunk = 3,  // a block that glibc's malloc mapped alone
  kMmap = 4,       // anonymous memory mapped by the program
  kMmapFile = 5,   // a file or device mapped by the program
  kSlab = 6,       // a size-segregated slab of jemalloc
  kLarge = 7,      // a large extent of jemalloc
  kAllocator = 8   // memory mapped by an allocator in line behind us
};

enum class EndReason : uint8_t {
  kExit = 1,      // exit() or return from main
  kFastExit = 2,  // _exit, _Exit, quick_exit
  kExec = 3,      // replaced by another program
  kDisk = 4,      // output could not be written; the program went on
  kFork = 5,      // a child ended before it recorded anything of its own
  kInternal = 6   // recording stopped because of a fault of our own; the program went on
};

enum : uint64_t { kNodeGuessed = 1 };
enum : uint64_t { kModuleMain = 1, kModuleVdso = 2, kModuleUnloaded = 4 };
enum : uint64_t { kThreadMain = 1, kThreadFlusher = 2, kThreadEnded = 4 };

}  // namespace traceaf::wire
