// The strict check: drives the checkers over the generations (see validate.h).
#include "reader/validate.h"

#include <algorithm>

#include "reader/trace.h"
#include "reader/validate_checks.h"

namespace traceaf::reader {
namespace {

Result<Report> check(TraceReader& reader, const std::string& name, const ValidateOptions& options) {
  Report report;
  Findings findings(report, options.limit);
  TableChecker tables(findings);
  RowChecker rows(findings);
  EventChecker events(findings, report);
  std::optional<Generation> last;
  while (const Generation* gen = reader.next()) {
    ++report.generations;
    report.batches += gen->batches.size();
    tables.generation(*gen);
    events.generation(*gen, rows.generation(*gen));
    last.emplace();
    last->number = gen->number;
    last->offset = gen->offset;
    last->complete = gen->complete;
  }
  events.finish();
  rows.finish(last ? &*last : nullptr);
  if (reader.fault()) {
    findings.error("structure", *reader.fault());
  } else if (!last) {
    findings.warning("empty", {}, "expected a generation behind the header, found the end of the file");
  }
  std::stable_sort(report.findings.begin(), report.findings.end(), [](const Finding& a, const Finding& b) {
    return a.offset.value_or(~uint64_t{0}) < b.offset.value_or(~uint64_t{0});
  });
  return report;
}

}  // namespace

void Findings::add(Severity severity, std::string_view rule, const Place& place, std::string message) {
  auto it =
      std::find_if(report_.counts.begin(), report_.counts.end(), [&](const RuleCount& c) { return c.rule == rule; });
  if (it == report_.counts.end()) it = report_.counts.insert(it, {std::string(rule), severity, 0});
  if (++it->count > limit_) return;
  Finding finding;
  finding.severity = severity;
  finding.rule = rule;
  finding.message = std::move(message);
  finding.offset = place.offset;
  finding.generation = place.generation;
  finding.batch = place.batch;
  report_.findings.push_back(std::move(finding));
}

std::string Finding::text() const {
  Error place;
  place.offset = offset;
  place.generation = generation;
  place.batch = batch;
  place.message = message;
  return (severity == Severity::kError ? "error: " : "warning: ") + place.text() + " [" + rule + "]";
}

uint64_t Report::errors() const {
  uint64_t n = 0;
  for (const auto& count : counts) n += count.severity == Severity::kError ? count.count : 0;
  return n;
}

uint64_t Report::warnings() const {
  uint64_t n = 0;
  for (const auto& count : counts) n += count.severity == Severity::kWarning ? count.count : 0;
  return n;
}

bool Report::ok() const { return errors() == 0; }

Result<Report> validate(const std::string& file, const ValidateOptions& options) {
  auto reader = TraceReader::open(file, {false, {}});
  if (!reader.ok()) return reader.error();
  return check(*reader.value(), file, options);
}

Result<Report> validate_bytes(std::span<const uint8_t> trace, const std::string& name, const ValidateOptions& options) {
  auto reader = TraceReader::from_bytes(trace, {}, name, {false, {}});
  if (!reader.ok()) return reader.error();
  return check(*reader.value(), name, options);
}

}  // namespace traceaf::reader
