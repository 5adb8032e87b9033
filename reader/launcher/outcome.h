// The paragraph at the end of `traceaf record`: which files, what they hold, what to do next.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <string>

namespace traceaf::launcher {

struct Outcome {
  std::string pattern;    // output pattern in force
  pid_t pid = 0;          // of the command
  uint64_t since_ns = 0;  // wall clock before it was started
  bool standby = false;
};

void tell_outcome(const Outcome& outcome);

}  // namespace traceaf::launcher
