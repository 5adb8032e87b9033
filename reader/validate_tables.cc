// Validation of structural batches: Sync, strings, stacks (see validate_checks.h).
#include <fmt/format.h>

#include "reader/tables.h"
#include "reader/validate_checks.h"

namespace traceaf::reader {
namespace {

using wire::Ev;

constexpr uint8_t number(Ev ev) { return static_cast<uint8_t>(ev); }

bool is_sync(const Generation& gen, const Batch& batch) {
  const auto body = gen.body(batch);
  return batch.experiment == 0 && !body.empty() && body[0] == number(Ev::kSync);
}

}  // namespace

void TableChecker::generation(const Generation& gen) {
  check_sync(gen);
  check_strings_and_stacks(gen);
}

void TableChecker::check_sync(const Generation& gen) {
  const Place place{gen.offset, gen.number, {}};
  bool has_sync = false;
  for (const Batch& batch : gen.batches) has_sync |= is_sync(gen, batch);
  if (!has_sync) {
    findings_.error("sync-missing", place,
                    fmt::format("expected a Sync batch in generation {}, found none", gen.number));
    return;
  }
  if (!is_sync(gen, gen.batches.front())) {
    findings_.error("sync-first", {gen.batches.front().offset, gen.number, 1},
                    fmt::format("expected the Sync batch first in generation {}, found another", gen.number));
  }
  const Sync& sync = gen.sync;
  if (sync.mono_ns == 0 || sync.wall_ns == 0) {
    findings_.error("sync-clock", place, "expected clocks above 0 in Sync, found 0");
  }
  if (last_sync_) {
    const auto rising = [&](const char* what, uint64_t before, uint64_t now) {
      if (now > before) return;
      findings_.error("sync-clock", place,
                      fmt::format("expected {} above {} of the Sync before, found {}", what, before, now));
    };
    rising("a time", last_sync_->time, sync.time);
    rising("a monotonic clock", last_sync_->mono_ns, sync.mono_ns);
    rising("a wall clock", last_sync_->wall_ns, sync.wall_ns);
    if (last_sync_->frequency != sync.frequency) {
      findings_.warning(
          "sync-frequency", place,
          fmt::format("expected the frequency {} of the Sync before, found {}", last_sync_->frequency, sync.frequency));
    }
  }
  last_sync_ = sync;
}

void TableChecker::check_strings_and_stacks(const Generation& gen) {
  tsl::robin_set<uint64_t> strings, stacks;
  struct FrameUse {
    uint64_t string;
    Place place;
    const char* what;
  };
  std::vector<FrameUse> uses;
  std::vector<std::pair<uint64_t, Place>> stack_uses;
  for (const Batch& batch : gen.batches) {
    const auto body = gen.body(batch);
    if (batch.experiment != 0 || body.empty() || !is_structural(body[0])) continue;
    const auto fault = for_each_entry(body, [&](const TableEntry& entry) {
      const Place place{batch.body_offset + entry.at, gen.number, batch.number};
      if (entry.type == number(Ev::kString)) {
        if (entry.values[0] == 0) findings_.error("string-id", place, "expected a string id from 1, found 0");
        if (!strings.insert(entry.values[0]).second) {
          findings_.error("string-twice", place,
                          fmt::format("expected string {} once, found it again", entry.values[0]));
        }
      } else if (entry.type == number(Ev::kStack)) {
        if (entry.values[0] == 0) findings_.error("stack-id", place, "expected a stack id from 1, found 0");
        if (!stacks.insert(entry.values[0]).second) {
          findings_.error("stack-twice", place, fmt::format("expected stack {} once, found it again", entry.values[0]));
        }
        for (size_t i = 2; i + 3 < entry.values.size(); i += 4) {
          uses.push_back({entry.values[i + 1], place, "function"});
          uses.push_back({entry.values[i + 2], place, "file"});
        }
      } else if (entry.type == number(Ev::kCPUSample)) {
        stack_uses.emplace_back(entry.values[4], place);
      }
    });
    if (fault) findings_.error("table", {batch.body_offset + fault->at, gen.number, batch.number}, fault->message);
  }
  for (const auto& use : uses) {
    if (use.string == 0 || strings.contains(use.string)) continue;
    findings_.error("frame-string", use.place,
                    fmt::format("expected a defined string as {} of a frame, found id {}", use.what, use.string));
  }
  for (const auto& [stack, place] : stack_uses) {
    if (stack == 0 || stacks.contains(stack)) continue;
    findings_.error("sample-stack", place, fmt::format("expected a defined stack of a CPU sample, found id {}", stack));
  }
}

}  // namespace traceaf::reader
