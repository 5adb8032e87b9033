// Where libtraceaf.so is.
#pragma once

#include <string>

namespace traceaf::launcher {

struct Library {
  std::string path;       // absolute; empty: not found
  std::string complaint;  // why not
};

// $TRACEAF_LIBRARY, else relative to this program: ../lib, ../lib/x86_64-linux-gnu, ../lib64, beside it.
Library find_library();

}  // namespace traceaf::launcher
