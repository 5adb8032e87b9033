// The result of reading a trace: everything the views need, aggregated. Its size grows with sites, context nodes,
// threads, spans and live blocks, never with events. Times are ns since the start of the process image's recording.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "emitter/wire/counters.h"
#include "emitter/wire/rows.h"

namespace traceaf::reader {

struct Amount {
  uint64_t count = 0;
  uint64_t bytes = 0;
};

// One call site: innermost context node and entry point, over all sizes.
struct Site {
  uint32_t node = 0;  // index into Profile::nodes; a NodeRoot when no stack is known
  uint8_t entry = 0;  // wire::Entry
  Amount allocated;   // HeapObjectAlloc
  Amount freed;       // HeapObjectFree of blocks of this site
  Amount live;        // at the end of what was read (allocated + inherited - freed)
  Amount peak;        // live at the global peak (first time the highest total of live bytes was reached)
  Amount temporary;   // freed by the allocating thread with no other allocation of that thread in between
  uint64_t first_birth_ns = 0, last_birth_ns = 0;
  uint64_t lifetime_ns = 0;  // sum over freed blocks
};

// One frame of the calling-context tree. nodes[0..wire::kFirstNode) are the roots (wire::NodeRoot).
struct Node {
  uint32_t parent = 0;
  uint32_t module = 0;  // index into Profile::modules; 0 = no module
  uint64_t offset = 0;  // return address - module start, or the absolute return address when module == 0
  bool defined = false;
  bool guessed = false;  // the walk got here by a frame pointer: a frame further in may be missing
};

struct Module {
  uint32_t id = 0;     // as in the trace; modules[0] is "no module"
  uint64_t flags = 0;  // wire::kModule*
  uint64_t start = 0, end = 0;
  uint64_t bias = 0;     // address in memory - address in the file's symbol tables
  std::string build_id;  // lower-case hex, empty when unknown
  std::string path;
};

struct Thread {
  uint64_t m = 0;  // serial id of the trace
  uint64_t tid = 0;
  uint64_t flags = 0;  // wire::kThread*
  std::string name;
  uint64_t birth_ns = 0;
  uint64_t stack_lo = 0, stack_bytes = 0;
  Amount allocated, freed;  // freed: frees made by this thread
  Amount temporary;
  uint64_t events = 0;  // AllocFree events of every kind
};

struct SpanStats {
  wire::SpanSource source = wire::SpanSource::kUnknown;
  uint64_t base = 0, bytes = 0;
  uint64_t kind_class = 0, object_size = 0;
  bool inferred = false;
  Amount live;  // live objects inside at the end
};

struct LiveBlock {
  uint64_t address = 0, size = 0, birth_ns = 0;
  uint32_t site = 0;  // index into Profile::sites
  uint64_t m = 0;
};

struct TimelinePoint {
  uint64_t time_ns = 0;
  uint64_t live_bytes = 0, live_blocks = 0;
  uint64_t allocated_bytes = 0, allocations = 0;  // cumulative
  uint64_t rss_bytes = 0;                         // 0 where not sampled
};

struct GenerationInfo {
  uint64_t number = 0;
  uint64_t first_ns = 0, last_ns = 0;
  uint64_t events = 0, batches = 0, bytes = 0;  // bytes: plain, uncompressed
  bool complete = false;                        // ended by EndOfGeneration
};

struct Process {
  uint64_t pid = 0, ppid = 0, parent_pid = 0, image = 0;
  std::string exe, host, options, version;
  std::vector<std::string> command;
  uint64_t start_wall_ns = 0;
  bool live_exact = true;  // the live set at the start of recording was known exactly
};

// How the trace ends.
struct Ending {
  bool complete = false;     // the recorder said its last word (End row) and nothing is missing
  wire::EndReason reason{};  // valid when an End row was read
  bool has_end = false;
  bool from_tail = false;   // the last part was recovered from the tail
  bool damaged = false;     // bytes were cut off or cannot be read; a trace may be unfinished without that
  uint64_t lost_bytes = 0;  // bytes at the end of the file that could not be read
  std::string note;         // what is missing and where, in one sentence; empty when complete
};

struct Profile {
  Process process;
  Ending ending;
  uint64_t duration_ns = 0;                    // first to last event
  uint64_t events = 0;                         // AllocFree events
  std::array<uint64_t, 256> events_by_type{};  // by wire::Ev number, all event types
  Amount allocated, freed;                     // HeapObjectAlloc, HeapObjectFree (bytes of frees: of known blocks)
  Amount inherited;                            // HeapObject: blocks that existed when recording began
  Amount temporary;
  Amount live;  // at the end of what was read
  Amount peak;  // highest live bytes, and the blocks at that moment
  uint64_t peak_time_ns = 0;
  uint64_t moves = 0;          // reallocations
  uint64_t unknown_frees = 0;  // frees of blocks never seen though the live set was exact
  uint64_t frees_before = 0;   // frees of blocks born before recording (or while it was off)
  uint64_t double_births = 0;  // births at an address that was already live
  uint64_t reordered = 0;      // births and deaths of one address told in the wrong order within 4 us, put right
  uint64_t unknown_types = 0;  // births whose type id had no row
  uint64_t min_addr = 0, page_size = 0, clock_freq = 0;
  std::array<uint64_t, wire::kCounterSlots> counters{};  // last values of the recorder's counters
  std::vector<Site> sites;
  std::vector<Node> nodes;
  std::vector<Module> modules;
  std::vector<Thread> threads;
  std::vector<SpanStats> spans;  // alive at the end
  Amount spans_peak;             // most spans alive at once, and their bytes at that time
  uint64_t span_allocs = 0, span_frees = 0;
  uint64_t stacks_born = 0, stacks_freed = 0;  // thread stacks
  std::vector<LiveBlock> live_blocks;
  std::vector<TimelinePoint> timeline;  // at most a few thousand points
  std::vector<GenerationInfo> generations;
  // Histogram by requested size: sizes[i] = blocks of size in [2^(i-1), 2^i), sizes[0] = size 0.
  std::array<Amount, 65> sizes{};
  // Histogram of lifetimes of freed blocks: lifetimes[i] = ns in [2^(i-1), 2^i).
  std::array<Amount, 65> lifetimes{};
};

}  // namespace traceaf::reader
