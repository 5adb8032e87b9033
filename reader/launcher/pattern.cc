// From an output pattern to trace files (see pattern.h).
#include "reader/launcher/pattern.h"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>

namespace traceaf::launcher {
namespace {

constexpr std::string_view kSuffix = ".traf";

// The stem of the pattern as a glob: what the launcher cannot know matches anything.
std::string as_glob(std::string_view stem, pid_t pid) {
  std::string out;
  for (size_t i = 0; i < stem.size(); ++i) {
    const char c = stem[i];
    if (c == '%' && i + 1 < stem.size()) {
      const char what = stem[++i];
      if (what == 'p' && pid != 0) {
        out += fmt::format("{}", pid);
      } else if (what == 'p') {
        out += "[0-9]*";
      } else if (std::string_view("enht").find(what) != std::string_view::npos) {
        out += '*';
      } else if (what == '%') {
        out += '%';
      } else {
        out += c;
        --i;
      }
      continue;
    }
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

bool digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

void collect(const std::string& pattern, bool numbered, std::string_view suffix, uint64_t since_ns,
             std::vector<std::string>& found) {
  glob_t paths{};
  if (glob(pattern.c_str(), 0, nullptr, &paths) == 0) {
    for (size_t i = 0; i < paths.gl_pathc; ++i) {
      const std::string path = paths.gl_pathv[i];
      std::string_view stem = path;
      stem.remove_suffix(suffix.size());
      if (numbered && !digits(stem.substr(stem.rfind('.') + 1))) continue;
      if (path.size() > 5 && path.compare(path.size() - 5, 5, ".tail") == 0) continue;
      struct stat info {};
      if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
      const uint64_t written =
          static_cast<uint64_t>(info.st_mtim.tv_sec) * 1000000000 + static_cast<uint64_t>(info.st_mtim.tv_nsec);
      // The clock of file systems lags that of the system by up to a tick.
      if (written + 20000000 >= since_ns) found.push_back(path);
    }
  }
  globfree(&paths);
}

// A pattern is a stem and the suffix before which a number is put that makes the name unique.
struct Parts {
  std::string_view stem, suffix;
};
Parts parts_of(std::string_view pattern) {
  if (pattern.size() < kSuffix.size() || pattern.substr(pattern.size() - kSuffix.size()) != kSuffix)
    return {pattern, {}};
  return {pattern.substr(0, pattern.size() - kSuffix.size()), kSuffix};
}

}  // namespace

std::vector<std::string> matching_traces(const std::string& pattern, pid_t pid, uint64_t since_ns) {
  const auto [stem, suffix] = parts_of(pattern);
  const std::string start = as_glob(stem, pid);
  std::vector<std::string> found;
  collect(start + std::string(suffix), false, suffix, since_ns, found);
  collect(start + ".*" + std::string(suffix), true, suffix, since_ns, found);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::string as_shell_pattern(const std::string& pattern) {
  const auto [stem, suffix] = parts_of(pattern);
  std::string out;
  for (size_t i = 0; i < stem.size(); ++i) {
    const bool varies =
        stem[i] == '%' && i + 1 < stem.size() && std::string_view("penht").find(stem[i + 1]) != std::string_view::npos;
    if (varies) ++i;
    out += varies ? '*' : stem[i];
  }
  if (out.find('*') == std::string::npos) out += "*";
  return out + std::string(suffix);
}

}  // namespace traceaf::launcher
