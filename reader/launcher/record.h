// traceaf record: runs a command with the library preloaded, and says at the end what came of it.
#pragma once

#include <string>
#include <vector>

namespace traceaf::launcher {

// `words` behind the verb. Returns the launcher's exit status, or does not return: it ends as the command ended.
int record(const std::vector<std::string>& words);

}  // namespace traceaf::launcher
