// What the launcher says: one place for its name and for making text safe. Standard output belongs to the program run.
#pragma once

#include <string_view>

namespace traceaf::launcher {

// "traceaf: MESSAGE" on stderr, control characters escaped.
void say(std::string_view message);

// Exit status of the launcher itself, as env and timeout have them.
enum Exit : int { kOk = 0, kFailed = 1, kUsage = 2, kOwnFailure = 125, kNotExecutable = 126, kNotFound = 127 };

}  // namespace traceaf::launcher
