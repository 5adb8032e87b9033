// What the tests of this room share: runs a piece of code while notes are taken and describes the notes as text.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "fake_recorder.h"

namespace fake {

// Runs `body` with the gate open. The body must not allocate but for what is tested.
template <typename Body>
std::vector<Note> record(Body body, bool all_threads = false) {
  note(all_threads);
  body();
  const Note* first = nullptr;
  const size_t n = notes_end(&first);
  return {first, first + n};
}

// "born malloc 24", "born new_aligned 24 align 64", "dying", "moved realloc 100", ... one word for each kind.
inline std::string describe(const Note& n) {
  const auto entry = traceaf::wire::entry_name(static_cast<uint64_t>(n.number));
  const std::string align = n.align != 0 ? fmt::format(" align {}", n.align) : "";
  switch (n.what) {
    case What::kBorn:
      return fmt::format("born {} {}{}", entry, n.size, align);
    case What::kDying:
      return "dying";
    case What::kMoveBegin:
      return "move";
    case What::kMoved:
      return fmt::format("moved {} {}", entry, n.size);
    case What::kMoveFailed:
      return "failed";
    case What::kMoveFreed:
      return "freed";
    case What::kMapped:
      return fmt::format("mapped {} source {}", n.size, n.number);
    case What::kUnmapping:
      return fmt::format("unmapping {}", n.size);
    case What::kRestored:
      return fmt::format("restored {}", n.size);
    case What::kBreak:
      return "break";
    case What::kThreadBegin:
      return "thread begin";
    case What::kThreadEnd:
      return "thread end";
    case What::kOption:
      return n.p == nullptr ? "option unset" : fmt::format("option {}", n.text);
    case What::kEnding:
      return fmt::format("ending {} status {} last {}", n.number, n.status, n.align);
    case What::kForkPrepare:
      return "fork prepare";
    case What::kForkParent:
      return "fork parent";
    case What::kForkChild:
      return "fork child";
    case What::kModulesChanging:
      return "modules changing";
    case What::kModulesChanged:
      return "modules changed";
    case What::kPark:
      return "park";
    case What::kUnpark:
      return "unpark";
  }
  return "?";
}

inline std::string text(const std::vector<Note>& notes) {
  std::string all;
  for (const Note& n : notes) all += (all.empty() ? "" : "; ") + describe(n);
  return all;
}

}  // namespace fake
