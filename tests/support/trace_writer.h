// Writes traces and tails for tests, in the words of a scenario: threads that allocate and free, rows, generations.
// Written from the format tables alone, so that it shares no code with the recorder.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "emitter/wire/entries.h"
#include "emitter/wire/events.h"
#include "emitter/wire/rows.h"
#include "emitter/wire/tail.h"
#include "reader/rows.h"

namespace traceaf::testing {

using Bytes = std::vector<uint8_t>;

void put(Bytes& out, uint64_t value);
void put_text(Bytes& out, std::string_view text);
// A batch with its header.
Bytes batch(uint64_t gen, uint64_t m, uint64_t time, const Bytes& body);
Bytes experimental_batch(uint64_t gen, uint64_t m, uint64_t time, const Bytes& body, uint8_t experiment = 1);
// A timed event: type, dt, integers.
Bytes event(wire::Ev ev, uint64_t dt, std::initializer_list<uint64_t> arguments);
// One zstd frame of `plain`.
Bytes zstd_frame(const Bytes& plain);

inline constexpr uint64_t kMin = 0x10000;  // minimum heap address unless a scenario says otherwise
inline constexpr uint64_t kPage = 4096;

class TraceWriter;

// One generation. Times are absolute; addresses are real ones. Events of one m go into one batch, in call order, until
// next_batch(m) or until it is full.
class GenerationWriter {
 public:
  GenerationWriter(TraceWriter& trace, uint64_t number) : trace_(trace), number_(number) {}

  GenerationWriter& sync(uint64_t time, uint64_t frequency = 1'000'000'000);
  GenerationWriter& info(uint64_t min = kMin, uint64_t page = kPage, uint64_t align = 8, uint64_t stack = 4096);
  GenerationWriter& alloc(uint64_t m, uint64_t time, uint64_t address, uint64_t type);
  GenerationWriter& free(uint64_t m, uint64_t time, uint64_t address);
  GenerationWriter& exists(uint64_t m, uint64_t time, uint64_t address, uint64_t type);
  GenerationWriter& span(wire::Ev ev, uint64_t m, uint64_t time, uint64_t base, uint64_t pages = 1, uint64_t kind = 1);
  GenerationWriter& stack(wire::Ev ev, uint64_t m, uint64_t time, uint64_t lo, uint64_t order = 12);
  // Any timed event; the thread's status is written before its first one, unless the scenario writes its own.
  GenerationWriter& event(uint64_t m, uint64_t time, wire::Ev ev, std::initializer_list<uint64_t> arguments);
  GenerationWriter& thread_end(uint64_t m, uint64_t time);
  GenerationWriter& next_batch(uint64_t m);
  // No status is written for m in this generation.
  GenerationWriter& without_status(uint64_t m);

  // A row of our tables with integer fields, on thread m's row batch.
  GenerationWriter& row(uint64_t m, wire::Row tag, std::initializer_list<uint64_t> fields);
  GenerationWriter& row_bytes(uint64_t m, uint64_t tag, const Bytes& payload);
  // A type id: its Site row and its row in the type table.
  GenerationWriter& site(uint64_t type, uint64_t node, wire::Entry entry, uint64_t size);
  // A row of the type table alone.
  GenerationWriter& type(uint64_t type, uint64_t address, uint64_t size, std::string_view name);
  GenerationWriter& node(uint64_t id, uint64_t parent, uint64_t module, uint64_t offset);
  GenerationWriter& module(uint64_t id, uint64_t flags, uint64_t start, uint64_t end, std::string_view path);
  GenerationWriter& thread(uint64_t m, uint64_t tid, uint64_t birth, uint64_t flags, std::string_view name);
  GenerationWriter& process(uint64_t start_time, bool live_exact = true);
  GenerationWriter& counters(uint64_t time, std::initializer_list<std::pair<wire::Counter, uint64_t>> pairs);
  GenerationWriter& marker(uint64_t time, wire::MarkerKind kind);
  GenerationWriter& end_row(uint64_t time, wire::EndReason reason = wire::EndReason::kExit);

  GenerationWriter& raw(const Bytes& bytes);  // as they are, behind the batches so far
  GenerationWriter& unfinished();             // no EndOfGeneration
  // The bytes of this generation; batches in order: Sync, info, then events and rows by first use, then types.
  [[nodiscard]] Bytes bytes() const;
  [[nodiscard]] uint64_t number() const { return number_; }

 private:
  struct Stream {
    uint64_t m = 0, time = 0, last = 0;
    bool experimental = false;
    bool open = true;
    bool raw = false;
    Bytes body;
    reader::RowDifferences differences;
  };
  Stream& stream(uint64_t m, bool experimental, uint64_t time);

  TraceWriter& trace_;
  uint64_t number_;
  uint64_t min_ = kMin, page_ = kPage, align_ = 8, stack_ = 4096;
  std::vector<Stream> streams_;
  std::set<uint64_t> started_;
  Bytes types_;
  bool finished_ = true;
  uint64_t sync_time_ = 0;
};

class TraceWriter {
 public:
  // A new generation with Sync at `time` and info; `bare` leaves both out.
  GenerationWriter& generation(uint64_t number, uint64_t time = 1000, bool bare = false);
  [[nodiscard]] Bytes bytes() const;
  // The header in one zstd frame and each generation in its own, as the recorder writes them.
  [[nodiscard]] Bytes compressed() const;

 private:
  friend class GenerationWriter;
  std::vector<GenerationWriter*> order_;
  std::map<uint64_t, GenerationWriter> generations_;
  std::set<uint64_t> known_threads_;
};

// A tail file.
class TailWriter {
 public:
  explicit TailWriter(uint32_t slots);
  TailWriter& clock(uint64_t frequency, uint64_t start_time);
  TailWriter& closed(uint64_t generation);
  TailWriter& ended(wire::EndReason reason);
  TailWriter& counter(wire::Counter counter, uint64_t value);
  TailWriter& slot(uint32_t index, wire::SlotState state, wire::SlotKind kind, uint64_t gen, uint64_t m, uint64_t time,
                   const Bytes& body);
  // Overwrites a 4- or 8-byte field.
  TailWriter& poke32(size_t offset, uint32_t value);
  TailWriter& poke64(size_t offset, uint64_t value);
  [[nodiscard]] const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

}  // namespace traceaf::testing
