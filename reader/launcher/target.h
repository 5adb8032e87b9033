// What kind of program a command is, found out before it is run: can a preloaded library trace it?
#pragma once

#include <string>

namespace traceaf::launcher {

struct Target {
  std::string path;      // of the program itself: PATH searched, #! interpreters followed; empty: not found
  std::string obstacle;  // one clause why it cannot be traced; empty when it can, or when nothing could be found out
};

// `name` as execvp takes it.
Target inspect_target(const std::string& name);

}  // namespace traceaf::launcher
