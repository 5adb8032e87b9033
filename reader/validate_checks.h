// The parts of the validator: one collector of findings, and a checker each for tables, rows and events. A checker sees
// each generation in turn and remembers what later generations are checked against.
#pragma once

#include <tsl/robin_map.h>
#include <tsl/robin_set.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reader/rows.h"
#include "reader/trace.h"
#include "reader/validate.h"

namespace traceaf::reader {

// Where a finding lies.
struct Place {
  std::optional<uint64_t> offset, generation, batch;
};

class Findings {
 public:
  Findings(Report& report, size_t limit) : report_(report), limit_(limit) {}
  void add(Severity severity, std::string_view rule, const Place& place, std::string message);
  void error(std::string_view rule, const Place& place, std::string message) {
    add(Severity::kError, rule, place, std::move(message));
  }
  void warning(std::string_view rule, const Place& place, std::string message) {
    add(Severity::kWarning, rule, place, std::move(message));
  }
  // An Error of the reader as a finding.
  void error(std::string_view rule, const Error& from) {
    error(rule, {from.offset, from.generation, from.batch}, from.message);
  }

 private:
  Report& report_;
  size_t limit_;
};

// What the rows and the type table of a generation define, for the check of its events.
struct Definitions {
  bool ours = false;  // a Process row was seen: the promises of docs/format.md hold
  bool live_exact = true;
  bool resumed = false;              // an On marker after an Off or Standby one
  tsl::robin_set<uint64_t> types;    // ids of the type table or a Site row
  tsl::robin_set<uint64_t> threads;  // m of Thread rows
};

// Structural batches: Sync first and rising, strings and stacks within Go's limits.
class TableChecker {
 public:
  explicit TableChecker(Findings& findings) : findings_(findings) {}
  void generation(const Generation& gen);

 private:
  void check_sync(const Generation& gen);
  void check_strings_and_stacks(const Generation& gen);

  Findings& findings_;
  std::optional<Sync> last_sync_;
};

// Experimental batches: info, types, rows.
class RowChecker {
 public:
  explicit RowChecker(Findings& findings) : findings_(findings) {}
  Definitions generation(const Generation& gen);
  // After the last generation.
  void finish(const Generation* last);

 private:
  struct NodeRow {
    uint64_t parent, module, offset, flags;
    bool operator==(const NodeRow&) const = default;
  };
  struct SiteRow {
    uint64_t node, size;
    Place place;
  };
  // What one generation defines.
  struct Tables {
    std::map<uint64_t, std::pair<NodeRow, Place>> nodes;
    std::map<uint64_t, SiteRow> sites;
    std::map<uint64_t, uint64_t> type_sizes;
    tsl::robin_set<uint64_t> modules;
    std::vector<std::pair<uint64_t, uint64_t>> markers;  // time, kind
    uint64_t processes = 0, infos = 0, ends = 0;
  };
  void check_experiments(const Generation& gen);
  void check_row(const RowView& row, const Place& place, Tables& tables, Definitions& out);
  void check_references(const Tables& tables);

  Findings& findings_;
  tsl::robin_map<uint64_t, NodeRow> known_nodes_;
  bool ours_ = false;
  bool recording_ = true;
  bool ended_ = false;  // the last generation has an End row
};

// Timed events: decoding, thread status, times, and births and deaths that alternate.
class EventChecker {
 public:
  EventChecker(Findings& findings, Report& report) : findings_(findings), report_(report) {}
  void generation(const Generation& gen, const Definitions& defined);
  void finish();

 private:
  struct ThreadState {
    uint64_t g = 0;
    uint64_t generation = 0;  // of its last event
    bool ended = false;
  };
  struct Birth {
    uint64_t time, m;
    bool doubtful = false;  // its death may have been told before it
  };
  // One kind of thing with births and deaths: objects, spans, stacks.
  struct Kind {
    std::string_view name;
    tsl::robin_map<uint64_t, Birth> alive;  // by address
  };
  // A finding that a matching event of another thread within HeapModel::kInversionNs takes back. Without a message it
  // is none: the death of a block that may have been born before recording.
  struct Held {
    Kind* kind;
    uint64_t address, time, m;
    bool birth;
    Place place;
    std::string message;
  };

  void check_status(uint8_t type, uint64_t m, const std::array<uint64_t, 3>& args, const Place& place, uint64_t number);
  void born(Kind& kind, uint64_t address, uint64_t time, uint64_t m, const Place& place);
  void died(Kind& kind, uint64_t address, uint64_t time, uint64_t m, const Place& place);
  void settle(uint64_t now, bool all);
  void commit(const Held& held);

  Findings& findings_;
  Report& report_;
  Definitions defined_;
  uint64_t inversion_ = 0;  // HeapModel::kInversionNs in timestamp units
  std::map<uint64_t, ThreadState> threads_;
  std::map<uint64_t, uint64_t> goroutines_;  // thread by g
  Kind objects_{"object", {}}, spans_{"span", {}}, stacks_{"stack", {}};
  std::vector<Held> held_;
};

}  // namespace traceaf::reader
