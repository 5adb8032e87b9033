// From an output pattern to the trace files that a process made by it (emitter/wire/options.inc, `out`).
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <string>
#include <vector>

namespace traceaf::launcher {

// Files that process `pid` may have written by `pattern` at `since_ns` (wall clock) or later, sorted by name. `pid` 0:
// any process. Numbers added to make a name unique are allowed for; tails are left out.
std::vector<std::string> matching_traces(const std::string& pattern, pid_t pid, uint64_t since_ns);

// The pattern as a shell would match its files: what varies is *.
std::string as_shell_pattern(const std::string& pattern);

}  // namespace traceaf::launcher
