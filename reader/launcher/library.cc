// Where libtraceaf.so is (see library.h).
#include "reader/launcher/library.h"

#include <cstdlib>
#include <filesystem>

namespace traceaf::launcher {
namespace {

namespace fs = std::filesystem;

Library checked(const fs::path& path) {
  std::error_code error;
  const std::string full = fs::canonical(path, error).string();
  if (error) return {{}, path.string() + ": " + error.message()};
  if (full.find_first_of(" :") != std::string::npos) {
    return {{},
            full + ": LD_PRELOAD cannot carry a path with a space or a colon; set TRACEAF_LIBRARY to a copy or link"};
  }
  return {full, {}};
}

}  // namespace

Library find_library() {
  const char* given = getenv("TRACEAF_LIBRARY");
  if (given != nullptr && *given != 0) {
    Library library = checked(given);
    if (library.path.empty()) library.complaint = "TRACEAF_LIBRARY: " + library.complaint;
    return library;
  }
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  std::string looked;
  for (const char* place : {"../lib", "../lib/x86_64-linux-gnu", "../lib64", "."}) {
    const fs::path path = here / place / "libtraceaf.so";
    if (fs::is_regular_file(path, error)) return checked(path);
    looked += (looked.empty() ? "" : ", ") + (here / place).lexically_normal().string();
  }
  return {{}, "libtraceaf.so was not found in " + looked + "; set TRACEAF_LIBRARY to its path"};
}

}  // namespace traceaf::launcher
