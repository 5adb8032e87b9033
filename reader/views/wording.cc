// Sentences that several views share (see wording.h).
#include "reader/views/wording.h"

#include <fmt/format.h>

#include "reader/views/escape.h"
#include "reader/views/units.h"

namespace traceaf::reader::views {

std::string end_reason_name(const Ending& ending) {
  if (!ending.has_end) return "none";
  switch (ending.reason) {
    case wire::EndReason::kExit:
      return "exit";
    case wire::EndReason::kFastExit:
      return "fast_exit";
    case wire::EndReason::kExec:
      return "exec";
    case wire::EndReason::kDisk:
      return "disk";
    case wire::EndReason::kFork:
      return "fork";
    case wire::EndReason::kInternal:
      return "internal";
  }
  return "unknown";
}

std::string how_it_ends(const Ending& ending) {
  if (!ending.has_end) {
    if (ending.damaged) return "unknown: the end of the trace is missing";
    return std::string("unfinished: the process was killed or is still running") +
           (ending.from_tail ? "; the last part comes from its .tail file" : "");
  }
  const std::string missing = ending.damaged ? ", but a part of the trace is missing" : "";
  switch (ending.reason) {
    case wire::EndReason::kExit:
      return "the process exited" + missing;
    case wire::EndReason::kFastExit:
      return "the process ended by _exit or the like, without exit handlers" + missing;
    case wire::EndReason::kExec:
      return "the process replaced itself by another program (exec)" + missing;
    case wire::EndReason::kDisk:
      return "recording stopped: the output could not be written; the program went on" + missing;
    case wire::EndReason::kFork:
      return "a child that ended before it recorded anything of its own" + missing;
    case wire::EndReason::kInternal:
      return "recording stopped by a fault of traceaf; the program went on" + missing;
  }
  return "for an unknown reason" + missing;
}

std::string live_heading(const Ending& ending) {
  if (!ending.has_end) return "Live where the trace stops";
  switch (ending.reason) {
    case wire::EndReason::kExit:
    case wire::EndReason::kFastExit:
    case wire::EndReason::kFork:
      return "Not freed at the end";
    case wire::EndReason::kExec:
      return "Live at exec";
    default:
      return "Live when recording stopped";
  }
}

std::string command_line(const Process& process) {
  if (!process.command.empty()) return shell_quoted(process.command);
  return process.exe.empty() ? "(unknown command)" : shell_quoted({process.exe});
}

bool counts_loss(uint8_t counter) {
  switch (static_cast<wire::Counter>(counter)) {
    case wire::Counter::k_events:
    case wire::Counter::k_waits:
    case wire::Counter::k_wait_ns:
    case wire::Counter::k_rss_bytes:
    case wire::Counter::k_rss_peak_bytes:
    case wire::Counter::k_own_bytes:
    case wire::Counter::k_generations:
    case wire::Counter::k_toggles:
    case wire::Counter::k_context_nodes:
      return false;
    default:
      return true;
  }
}

std::vector<Loss> losses(const Profile& profile) {
  std::vector<Loss> found;
  const auto add = [&](std::string name, uint64_t value, std::string meaning) {
    if (value != 0) found.push_back({std::move(name), value, std::move(meaning)});
  };
  for (const auto& counter : wire::kCounters) {
    if (counts_loss(counter.number)) {
      add(std::string(counter.name), profile.counters[counter.number], std::string(counter.meaning));
    }
  }
  add("unknown_frees", profile.unknown_frees, "frees of blocks whose birth is not in the trace");
  add("frees_before", profile.frees_before, "frees of blocks born before recording or while it was off");
  add("double_births", profile.double_births, "births at an address that was already live");
  add("unknown_types", profile.unknown_types, "births whose size and site are unknown, because their row is missing");
  add("lost_bytes", profile.ending.lost_bytes, "bytes at the end of the file that could not be read");
  return found;
}

std::string symbol_state_name(SymbolState state) {
  switch (state) {
    case SymbolState::kNotLoaded:
      return "not looked up";
    case SymbolState::kDebugInfo:
      return "debug info";
    case SymbolState::kSymbolTable:
      return "symbol table only";
    case SymbolState::kNone:
      return "no symbols";
    case SymbolState::kMissing:
      return "file not found";
    case SymbolState::kMismatch:
      return "file is another build";
    case SymbolState::kUnsupported:
      return "debug info not readable";
  }
  return "?";
}

std::string coverage_text(const Names& names) {
  if (!names.symbols) return "not looked up (--no-symbols)";
  size_t with_lines = 0, looked_up = 0;
  for (const ModuleCoverage& module : names.coverage) {
    if (module.state == SymbolState::kNotLoaded) continue;
    ++looked_up;
    with_lines += module.state == SymbolState::kDebugInfo ? 1 : 0;
  }
  return fmt::format("{} of {} with debug info, {} of {} without a name", with_lines, count_of(looked_up, "module"),
                     format_count(names.unresolved), count_of(names.addresses, "frame"));
}

std::vector<std::string> modules_without_lines(const Profile& profile, const Names& names) {
  std::vector<std::string> lacking;
  for (const ModuleCoverage& module : names.coverage) {
    if (module.state == SymbolState::kNotLoaded || module.state == SymbolState::kDebugInfo) continue;
    const std::string path = module.module < profile.modules.size() ? profile.modules[module.module].path : "?";
    lacking.push_back(fmt::format("{} ({})", path.substr(path.rfind('/') + 1), symbol_state_name(module.state)));
  }
  return lacking;
}

std::string left_out(size_t shown, size_t all) {
  if (shown >= all) return {};
  return fmt::format("... {} more (--limit 0 shows all)", format_count(all - shown));
}

}  // namespace traceaf::reader::views
