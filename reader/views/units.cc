// Numbers as people read them (see units.h).
#include "reader/views/units.h"

#include <fmt/format.h>
#include <time.h>

namespace traceaf::reader::views {

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  static constexpr const char* kNames[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.95 would print as "1024.0".
  while (value >= 1023.95 && unit + 1 < std::size(kNames)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kNames[unit]);
}

std::string format_count(uint64_t count) {
  std::string digits = fmt::format("{}", count);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string format_duration(uint64_t ns) {
  if (ns < 1000) return fmt::format("{} ns", ns);
  static constexpr struct {
    double ns;
    const char* name;
  } kUnits[] = {{1e3, "us"}, {1e6, "ms"}, {1e9, "s"}};
  for (const auto& unit : kUnits) {
    const double value = static_cast<double>(ns) / unit.ns;
    const double limit = unit.ns == 1e9 ? 119.5 : 999.5;
    if (value >= limit) continue;
    return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, unit.name);
  }
  const uint64_t seconds = (ns + 500000000) / 1000000000;
  if (seconds < 2 * 3600) return fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {:02} min", seconds / 3600, seconds / 60 % 60);
}

std::string format_share(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  const double percent = 100 * static_cast<double>(part) / static_cast<double>(whole);
  if (part != 0 && percent < 0.05) return "<0.1%";
  return fmt::format("{:.1f}%", percent);
}

std::string format_wall_time(uint64_t ns_since_epoch) {
  if (ns_since_epoch == 0) return {};
  const auto seconds = static_cast<time_t>(ns_since_epoch / 1000000000);
  tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return {};
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string count_of(uint64_t count, const std::string& one, const std::string& many) {
  return format_count(count) + " " + (count == 1 ? one : many.empty() ? one + "s" : many);
}

}  // namespace traceaf::reader::views
