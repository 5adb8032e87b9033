// The paragraph at the end of `traceaf record` (see outcome.h).
#include "reader/launcher/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "reader/launcher/pattern.h"
#include "reader/launcher/say.h"
#include "reader/read.h"
#include "reader/rows.h"
#include "reader/trace.h"
#include "reader/views/escape.h"
#include "reader/views/units.h"
#include "reader/views/wording.h"

namespace traceaf::launcher {
namespace {

using reader::views::count_of;
using reader::views::format_bytes;

constexpr size_t kMostRead = 200;  // children's traces whose process is looked at

struct Owner {
  uint64_t pid = 0;
  uint64_t ppid = 0;        // when it was recorded
  uint64_t parent_pid = 0;  // the traced process that it was forked from
};

// The process that wrote `file`, from its first generation; nothing when that has no Process row.
std::optional<Owner> owner_of(const std::string& file) {
  auto trace = reader::TraceReader::open(file, {});
  if (!trace.ok()) return std::nullopt;
  const reader::Generation* generation = trace.value()->next();
  std::optional<Owner> owner;
  if (generation == nullptr) return owner;
  for (const auto& data : generation->experimental) {
    if (data.kind != wire::kBatchRows) continue;
    const auto fault = reader::for_each_row(data.bytes, [&](const reader::RowView& row) {
      if (row.layout == nullptr || row.tag != static_cast<uint64_t>(wire::Row::kProcess)) return;
      Owner found;
      for (size_t i = 0; i < row.layout->fields; ++i) {
        if (row.layout->names[i] == "pid") found.pid = row.value[i];
        if (row.layout->names[i] == "ppid") found.ppid = row.value[i];
        if (row.layout->names[i] == "parent_pid") found.parent_pid = row.value[i];
      }
      owner = found;
    });
    if (fault.has_value() || owner.has_value()) break;
  }
  return owner;
}

struct Traces {
  std::vector<std::string> own;  // of the command's process, one for each image
  size_t descendants = 0;
};

Traces find_traces(const Outcome& outcome) {
  Traces traces;
  const auto all = matching_traces(outcome.pattern, 0, outcome.since_ns);
  std::vector<Owner> others;
  for (size_t i = 0; i < std::min(all.size(), kMostRead); ++i) {
    const auto owner = owner_of(all[i]);
    if (!owner.has_value()) continue;
    if (owner->pid == static_cast<uint64_t>(outcome.pid)) {
      traces.own.push_back(all[i]);
    } else {
      others.push_back(*owner);
    }
  }
  // One process may have several images, so each is counted once.
  std::vector<uint64_t> family = {static_cast<uint64_t>(outcome.pid)};
  const auto related = [&](uint64_t pid) {
    return pid != 0 && std::find(family.begin(), family.end(), pid) != family.end();
  };
  for (bool grew = true; grew;) {
    grew = false;
    for (const Owner& other : others) {
      if (related(other.pid) || (!related(other.parent_pid) && !related(other.ppid))) continue;
      family.push_back(other.pid);
      ++traces.descendants;
      grew = true;
    }
  }
  if (traces.own.empty()) traces.own = matching_traces(outcome.pattern, outcome.pid, outcome.since_ns);
  return traces;
}

std::string losses_of(const reader::Profile& profile) {
  std::string said;
  for (const auto& loss : reader::views::losses(profile)) {
    said += fmt::format("{}{} {}", said.empty() ? "" : ", ", loss.name, reader::views::format_count(loss.value));
  }
  return said.empty() ? "none" : said;
}

std::string describe(const std::string& file, const reader::Profile& profile) {
  std::string said =
      fmt::format("{}: {} in {}, peak {}, {} in {} {}, losses: {}", file, count_of(profile.events, "event"),
                  reader::views::format_duration(profile.duration_ns), format_bytes(profile.peak.bytes),
                  format_bytes(profile.live.bytes), count_of(profile.live.count, "block"),
                  profile.ending.has_end ? "not freed at the end" : "live where the trace stops", losses_of(profile));
  if (profile.ending.damaged) said += fmt::format(" ({})", profile.ending.note);
  return said;
}

}  // namespace

void tell_outcome(const Outcome& outcome) {
  const Traces traces = find_traces(outcome);
  if (traces.own.empty()) {
    say(outcome.standby ? "no trace was written: recording was never switched on"
                        : "no trace was written: the program called no allocation function of libtraceaf.so");
    return;
  }
  // The image with the most events is the one that was meant: before it was a shell or env that called exec.
  std::string best;
  std::string told;
  uint64_t most = 0;
  for (const std::string& file : traces.own) {
    auto profile = reader::read_profile(file, {});
    if (!profile.ok()) {
      say(profile.error().text());
      continue;
    }
    if (!best.empty() && profile.value().events <= most) continue;
    best = file;
    most = profile.value().events;
    told = describe(file, profile.value());
  }
  if (best.empty()) return;
  if (traces.own.size() > 1) {
    told +=
        fmt::format(". {} of the same process: before or after exec", count_of(traces.own.size() - 1, "further trace"));
  }
  if (traces.descendants != 0) {
    told +=
        fmt::format(". {} recorded too ({})", count_of(traces.descendants, "child process was", "child processes were"),
                    as_shell_pattern(outcome.pattern));
  }
  say(fmt::format("{}. Next: {}", told, reader::views::shell_quoted({"traceaf-report", best})));
}

}  // namespace traceaf::launcher
