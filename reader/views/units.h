// Numbers as people read them: binary sizes, grouped counts, durations, shares.
#pragma once

#include <cstdint>
#include <string>

namespace traceaf::reader::views {

// "0 B", "1023 B", "1.0 KiB", "12.3 MiB": powers of 1024, one decimal above bytes.
std::string format_bytes(uint64_t bytes);
// "1,234,567".
std::string format_count(uint64_t count);
// "17 ns", "1.23 us", "45.6 ms", "1.53 s", "2 min 03 s", "1 h 02 min": three digits that matter.
std::string format_duration(uint64_t ns);
// "12.3%"; "<0.1%" for a part that would round to nothing; "-" when there is no whole.
std::string format_share(uint64_t part, uint64_t whole);
// "2026-11-30 11:22:33 UTC"; empty for 0.
std::string format_wall_time(uint64_t ns_since_epoch);
// "1 block", "1,234 blocks". `many` defaults to `one` with an s.
std::string count_of(uint64_t count, const std::string& one, const std::string& many = {});

}  // namespace traceaf::reader::views
