// The strict check of a trace file: everything Go's reader and validator demand, and everything docs/format.md promises
// beyond that. What read_profile forgives is a finding here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reader/status.h"

namespace traceaf::reader {

enum class Severity : uint8_t {
  kError,   // Go's tools refuse the trace or report wrong things, or the recorder broke a promise
  kWarning  // legal, but something is missing that a whole trace of ours has (the end, names of sites)
};

struct Finding {
  Severity severity = Severity::kError;
  std::string rule;                // short and stable: "sync-missing", "double-birth"; the list is in docs/format.md
  std::string message;             // one sentence: what was expected and found
  std::optional<uint64_t> offset;  // in the plain trace
  std::optional<uint64_t> generation, batch;

  // "error: offset 12 (generation 1, batch 2): message [rule]"
  [[nodiscard]] std::string text() const;
};

struct RuleCount {
  std::string rule;
  Severity severity = Severity::kError;
  uint64_t count = 0;
};

struct Report {
  std::vector<Finding> findings;  // in file order; at most `limit` of one rule
  std::vector<RuleCount> counts;  // every rule that was broken, with all its cases
  uint64_t generations = 0, batches = 0, events = 0, allocfree_events = 0;

  [[nodiscard]] bool ok() const;  // no finding of severity kError
  [[nodiscard]] uint64_t errors() const;
  [[nodiscard]] uint64_t warnings() const;
};

struct ValidateOptions {
  size_t limit = 20;  // findings kept of one rule
};

// Checks `file` alone (its tail is not read). Fails only when the file is no readable trace at all.
Result<Report> validate(const std::string& file, const ValidateOptions& options = {});
Result<Report> validate_bytes(std::span<const uint8_t> trace, const std::string& name,
                              const ValidateOptions& options = {});

}  // namespace traceaf::reader
