// traceaf on, off, standby and status: the recorder of a running process, through the header of its mapped tail.
#pragma once

#include <string>
#include <vector>

namespace traceaf::launcher {

// `verb`: "on", "off", "standby" or "status". Returns the exit status.
int control(const std::string& verb, const std::vector<std::string>& words);

}  // namespace traceaf::launcher
