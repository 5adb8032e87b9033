// Sentences that several views share: how a trace ends, what was lost, what symbols are missing.
#pragma once

#include <string>
#include <vector>

#include "reader/profile.h"
#include "reader/views/document.h"
#include "reader/views/names.h"

namespace traceaf::reader::views {

// "exit", "fast_exit", ... ; "none" when the trace has no end.
std::string end_reason_name(const Ending& ending);
// "by exit", "unfinished: the process was killed or is still running", ...
std::string how_it_ends(const Ending& ending);
// Heading of what is live at the end: "Not freed at the end" is only said of a process that did end.
std::string live_heading(const Ending& ending);
// The command line for a shell, or the program, or "(unknown command)", when none was recorded.
std::string command_line(const Process& process);

// A number that says the profile is not whole or not exact.
struct Loss {
  std::string name;
  uint64_t value = 0;
  std::string meaning;
};
// Every one that is not zero: the recorder's counters of loss first, then what the reader found.
std::vector<Loss> losses(const Profile& profile);
// False for counters of work (events, waits, memory), true for those of loss.
bool counts_loss(uint8_t counter);

std::string symbol_state_name(SymbolState state);
// "3 of 5 modules with debug info, 0 of 12 frames without a name".
std::string coverage_text(const Names& names);
// The modules that lack debug info, each with its state in brackets: "libfoo.so.1 (symbol table only)".
std::vector<std::string> modules_without_lines(const Profile& profile, const Names& names);

// "1 trace row of 12 left out (--limit 0 shows all)", empty when nothing was.
std::string left_out(size_t shown, size_t all);

}  // namespace traceaf::reader::views
