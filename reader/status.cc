// Errors as text: where, then what.
#include "reader/status.h"

#include <fmt/format.h>

namespace traceaf::reader {

std::string Error::text() const {
  std::string out;
  if (!file.empty()) out += file + ": ";
  if (offset) out += fmt::format("{}offset {}", compressed ? "compressed " : "", *offset);
  if (generation) {
    out += fmt::format("{}(generation {}", offset ? " " : "", *generation);
    if (batch) out += fmt::format(", batch {}", *batch);
    out += ")";
  }
  if (offset || generation) out += ": ";
  return out + message;
}

}  // namespace traceaf::reader
