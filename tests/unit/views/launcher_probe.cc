// Stands in for libtraceaf.so: says on stderr that it is loaded, and what TRACEALLOCFREE and LD_PRELOAD are.
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace {

__attribute__((constructor)) void loaded() {
  const char* quiet = getenv("PROBE_QUIET");
  if (quiet != nullptr) return;
  const auto of = [](const char* name) {
    const char* value = getenv(name);
    return std::string(value == nullptr ? "unset" : value);
  };
  const std::string said = "probe: " + of("TRACEALLOCFREE") + " | " + of("LD_PRELOAD") + "\n";
  if (write(STDERR_FILENO, said.data(), said.size()) < 0) abort();
}

}  // namespace
