// What the rows of a trace say: process, modules, calling-context nodes, threads, counters, markers, the end; and what
// the type ids of the present generation mean.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reader/id_table.h"
#include "reader/profile.h"
#include "reader/rows.h"
#include "reader/trace.h"

namespace traceaf::reader {

// What a type id of this generation stands for.
struct TypeMeaning {
  static constexpr uint32_t kNoSite = ~uint32_t{0};
  uint64_t size = 0;
  uint32_t node = 0;        // index into Profile::nodes
  uint32_t site = kNoSite;  // the heap model's index, once it has one
  uint8_t entry = 0;
  bool known = false;  // a Site row or a row of the type table has it
};

struct MarkerRow {
  uint64_t time = 0;
  uint64_t kind = 0;  // wire::MarkerKind
};

struct SpanInfoRow {
  uint64_t m = 0;
  wire::SpanSource source = wire::SpanSource::kUnknown;
  bool inferred = false;
  uint64_t object_size = 0;
};

struct EndRow {
  uint64_t time = 0;
  uint64_t reason = 0;  // wire::EndReason
  uint64_t status = 0;
  uint64_t generation = 0;
};

class Contexts {
 public:
  Contexts();
  // Reads the rows and the type table of a generation. Returns the first fault in them; the rows before it count.
  Failure begin_generation(const Generation& gen);

  // Of the present generation.
  TypeMeaning* type(uint64_t id) {
    TypeMeaning* const meaning = types_.find(id);
    return meaning != nullptr && meaning->known ? meaning : nullptr;
  }
  // type(id) will be asked for soon.
  void prefetch_type(uint64_t id) const { types_.prefetch(id); }
  [[nodiscard]] const std::vector<MarkerRow>& markers() const { return markers_; }              // by time
  [[nodiscard]] const std::vector<std::pair<uint64_t, uint64_t>>& rss() const { return rss_; }  // time, bytes; by time
  // How the next span `id` opened by thread m came about: rows are used up in their order.
  SpanInfoRow span_info(uint64_t id, uint64_t m);

  // Of the whole trace.
  uint32_t thread_index(uint64_t m);  // index into threads, made when new
  std::vector<Thread> threads;
  std::vector<Node> nodes;
  std::vector<Module> modules;
  Process process;
  std::vector<uint64_t> thread_births;  // timestamps of Thread rows, by thread index; 0 when unknown
  bool has_process = false;
  std::optional<uint64_t> start_time;  // of the first Process row
  bool live_exact = true;              // of the last Process row
  std::optional<EndRow> end;           // the last End row
  std::array<uint64_t, wire::kCounterSlots> counters{};

  // Makes the nodes a forest: a node whose ancestors run in a circle (a corrupt trace) becomes a root's child.
  void break_cycles();

 private:
  void take_row(const Generation& gen, uint64_t m, const RowView& row);
  void take_process(const RowView& row);
  void take_module(const RowView& row);
  void take_thread(const RowView& row);
  void take_node(const RowView& row);
  void take_counters(const RowView& row);
  uint32_t node_index(uint64_t id);
  uint32_t module_index(uint64_t id);

  struct SpanRows {
    std::vector<SpanInfoRow> rows;
    std::vector<bool> used;
    size_t first_unused = 0;
  };
  IdTable<TypeMeaning> types_;
  IdTable<uint32_t> node_ids_, module_ids_, thread_ids_;  // index + 1; 0: none yet
  tsl::robin_map<uint64_t, SpanRows> span_rows_;
  std::vector<MarkerRow> markers_;
  std::vector<std::pair<uint64_t, uint64_t>> rss_;
  uint64_t counters_time_ = 0;
};

}  // namespace traceaf::reader
