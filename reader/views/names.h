// Names of all context nodes of a profile: every address resolved once, in bulk, and equal source frames shared.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reader/profile.h"
#include "reader/symbols/symbolizer.h"

namespace traceaf::reader::views {

using FrameId = uint32_t;

// A frame at source level. Frames are equal when function, file, line, module and `guessed` are.
struct Frame {
  std::string function;    // demangled; "module+0xoffset" when unknown; "[...]" for what is no function
  std::string short_name;  // see short_function
  std::string file;        // empty when unknown
  std::string module;      // path of the object, empty when none
  uint32_t line = 0;
  bool inlined = false;
  bool named = false;     // `function` is the name of one
  bool plumbing = false;  // see is_plumbing
  bool guessed = false;   // see Node::guessed; of frames inlined into each other the innermost
};

struct Names {
  bool symbols = false;  // false: no symbols were asked for
  std::vector<Frame> frames;
  std::vector<ModuleCoverage> coverage;  // of the modules that were looked up
  uint64_t addresses = 0;                // distinct addresses in stacks
  uint64_t unresolved = 0;               // of these without a function name

  // Frames of node `n`, innermost first: frame_of[begin[n] .. begin[n + 1]). Roots have none.
  std::vector<uint32_t> begin;
  std::vector<FrameId> frame_of;
};

// As Symbolizer::resolve: the frames of each address, innermost first.
using Resolve = std::function<std::vector<std::vector<SourceFrame>>(const std::vector<Symbolizer::Address>&)>;

// Calls `resolve` once, for all distinct addresses. Without it every frame is "module+0xoffset". The coverage is the
// caller's to fill in.
Names resolve_names(const Profile& profile, const Resolve& resolve);

// "libfoo.so.1+0x1234", or "0x7f00dead" outside every module.
std::string raw_name(const Profile& profile, uint32_t module, uint64_t offset);

}  // namespace traceaf::reader::views
