// From a file to a Profile: what the views call.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "reader/profile.h"
#include "reader/status.h"

namespace traceaf::reader {

struct ReadOptions {
  // Called now and then with bytes read and bytes in all (0: unknown).
  std::function<void(uint64_t, uint64_t)> progress;
  bool use_tail = true;  // read FILE.tail beside an unfinished trace
};

// Reads the trace `file` (zstd or plain) and, when it is unfinished, its tail. A fault in the middle is no failure:
// what was complete before it is in the profile and `ending` says what is missing. Fails only when nothing could be
// read.
Result<Profile> read_profile(const std::string& file, const ReadOptions& options);
// The same from memory: `trace` plain or zstd, `tail` the bytes of a tail file or empty. `name` stands in errors.
Result<Profile> read_profile_bytes(std::span<const uint8_t> trace, std::span<const uint8_t> tail,
                                   const std::string& name, const ReadOptions& options = {});

}  // namespace traceaf::reader
