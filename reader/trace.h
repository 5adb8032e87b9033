// The parser API: a trace as generations, each with its Sync, its experimental data and its experimental events in
// order, as Go's own parser exposes them. Everything above raw bytes and below the heap model.
//
//   auto reader = TraceReader::open("app.traf", {});
//   while (const Generation* gen = reader.value()->next())
//     for_each_experimental_event(*gen, [](const ExperimentalEvent& e) { ... });
//   reader.value()->fault() says why the trace ended early, if it did.
//
// Memory: one generation at a time, and where a second thread decompresses ahead the next one as well, unless it is a
// large one. Pointers and views into a Generation are valid until the next call of next().
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emitter/wire/events.h"
#include "reader/status.h"

namespace traceaf::reader {

// What ties a generation's timestamps to clocks.
struct Sync {
  uint64_t time = 0;       // timestamp at which the clocks were read
  uint64_t frequency = 0;  // timestamp units per second
  uint64_t mono_ns = 0;
  uint64_t wall_ns = 0;    // since the epoch
  bool from_tail = false;  // made from the tail's header: the generation itself had no Sync batch
};

// Constants that turn ids into addresses (experimental batch of kind 1).
struct HeapInfo {
  uint64_t min_addr = 0;
  uint64_t page_size = 4096;
  uint64_t min_align = wire::kMinHeapAlign;
  uint64_t fixed_stack = wire::kFixedStack;

  [[nodiscard]] uint64_t object_address(uint64_t id) const { return min_addr + id * min_align; }  // modulo 2^64
  [[nodiscard]] uint64_t span_address(uint64_t id) const { return min_addr + id * page_size; }
  [[nodiscard]] uint64_t stack_address(uint64_t id) const { return min_addr + id * fixed_stack; }
};

// One batch as it lies in Generation::bytes.
struct Batch {
  uint64_t m = 0;
  uint64_t time = 0;          // base timestamp
  uint64_t offset = 0;        // of its first byte in the plain trace (or in the tail file, when from_tail)
  uint64_t body_offset = 0;   // of its body, likewise
  uint64_t number = 0;        // n-th batch of its generation in the file, from 1
  size_t begin = 0, end = 0;  // body: [begin, end) of Generation::bytes
  uint8_t experiment = 0;     // 0: an ordinary batch; else the experiment id, and the body begins with its kind
  bool from_tail = false;
};

// An experimental batch: the supplement that belongs to the events of its generation.
struct ExperimentalData {
  uint8_t kind = 0;  // wire::kBatchTypes, kBatchInfo, kBatchRows or a kind we do not know
  uint64_t m = 0;
  uint64_t time = 0;
  std::span<const uint8_t> bytes;  // behind the kind byte
  uint64_t offset = 0;             // of bytes[0] in the plain trace (or in the tail file)
  bool from_tail = false;
};

// The batches of one thread in file order.
struct ThreadBatches {
  uint64_t m = 0;
  std::vector<uint32_t> batches;  // indices into Generation::batches
};

struct Generation {
  uint64_t number = 0;
  bool complete = false;     // ended by EndOfGeneration
  bool from_tail = false;    // has at least one batch of the tail
  uint64_t offset = 0;       // of its first byte in the plain trace
  uint64_t plain_bytes = 0;  // batches with their headers
  Sync sync;
  HeapInfo info;
  bool has_info = false;  // false: `info` is that of an earlier generation or of the tail's header
  std::vector<Batch> batches;
  std::vector<ThreadBatches> threads;          // event batches by m, m ascending
  std::vector<ExperimentalData> experimental;  // of the AllocFree experiment, by m, file order within one m
  std::vector<uint8_t> bytes;

  [[nodiscard]] std::span<const uint8_t> body(const Batch& batch) const {
    return {bytes.data() + batch.begin, bytes.data() + batch.end};
  }
};

// A row of the type table (kind 0).
struct TypeEntry {
  uint64_t id = 0, address = 0, size = 0, pointer_bytes = 0;
  std::string_view name;
};
// Calls `visit` for each type of the generation. The error of a malformed table says where; rows before it were
// visited.
Failure for_each_type(const Generation& gen, const std::function<void(const TypeEntry&)>& visit);

// An event of the AllocFree experiment.
struct ExperimentalEvent {
  uint64_t time = 0;  // timestamp units; see Sync::frequency
  uint64_t m = 0;
  uint8_t type = 0;  // wire::Ev
  std::string_view name;
  std::span<const std::string_view> argument_names;  // without dt
  std::array<uint64_t, 4> arguments{};
};
// Calls `visit` for each AllocFree event in order of (time, existing before dying before born, m); the order of one
// thread is kept. Returns the first malformed event, if any: of the batch that holds it the events before it are
// visited.
Failure for_each_experimental_event(const Generation& gen, const std::function<void(const ExperimentalEvent&)>& visit);

// ns since `origin` (a timestamp) for timestamps of one frequency. Exact to a ns; never decreasing.
class TimeScale {
 public:
  TimeScale() = default;
  explicit TimeScale(uint64_t frequency);
  [[nodiscard]] uint64_t ns(uint64_t units) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(units) * multiplier_) >> shift_);
  }

 private:
  uint64_t multiplier_ = uint64_t{1} << 32;
  unsigned shift_ = 32;
};

class Input;       // reader/input.h
struct TailState;  // reader/tail.h

struct TraceOptions {
  bool use_tail = true;                              // read FILE.tail beside the trace
  std::function<void(uint64_t, uint64_t)> progress;  // bytes of the file read, and its size (0: unknown)
  bool read_ahead = true;                            // may decompress the next generation on a second thread
};

class TraceReader {
 public:
  // Fails when `file` is no readable trace at all (its header is checked).
  static Result<std::unique_ptr<TraceReader>> open(const std::string& file, TraceOptions options);
  // The same from memory: `trace` plain or zstd, `tail` the bytes of a tail file or empty. `name` stands in errors.
  static Result<std::unique_ptr<TraceReader>> from_bytes(std::span<const uint8_t> trace, std::span<const uint8_t> tail,
                                                         const std::string& name, TraceOptions options = {});
  ~TraceReader();

  // The next generation, or nullptr when there is none. The last ones may be incomplete.
  const Generation* next();
  // Why the output ended before its time: valid once next() returned nullptr (or an incomplete generation). A fault
  // whose missing bytes were all found in the tail is still reported here; see tail_covers().
  [[nodiscard]] const Failure& fault() const;
  // True when the tail is known to hold everything the output lacks.
  [[nodiscard]] bool tail_covers() const;
  // The tail beside the trace, or nullptr. `tail_fault` says what was wrong with it.
  [[nodiscard]] const TailState* tail() const;
  [[nodiscard]] const Failure& tail_fault() const;
  // Bytes at the end that could not be used: decoded ones behind the fault and those of the file not decoded.
  [[nodiscard]] uint64_t lost_bytes() const;
  [[nodiscard]] bool compressed() const;

 private:
  struct Impl;
  explicit TraceReader(std::unique_ptr<Impl> impl);
  static Result<std::unique_ptr<TraceReader>> start(Result<std::unique_ptr<Input>> input,
                                                    std::optional<Result<TailState>> tail, TraceOptions options);
  std::unique_ptr<Impl> impl_;
};

}  // namespace traceaf::reader
