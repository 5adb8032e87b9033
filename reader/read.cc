// read_profile: reader, builder and the sentence about the trace's end (see read.h).
#include "reader/read.h"

#include <fmt/format.h>

#include "reader/profile_builder.h"
#include "reader/tail.h"
#include "reader/trace.h"

namespace traceaf::reader {
namespace {

bool is_end_reason(uint64_t reason) {
  return reason >= static_cast<uint64_t>(wire::EndReason::kExit) &&
         reason <= static_cast<uint64_t>(wire::EndReason::kInternal);
}

// Reasons after which nothing more could have been recorded. After kDisk and kInternal the program went on unseen.
bool is_whole_end(uint64_t reason) {
  switch (static_cast<wire::EndReason>(reason)) {
    case wire::EndReason::kExit:
    case wire::EndReason::kFastExit:
    case wire::EndReason::kExec:
    case wire::EndReason::kFork:
      return true;
    case wire::EndReason::kDisk:
    case wire::EndReason::kInternal:
      return false;
  }
  return false;
}

std::string after_what(const Profile& profile) {
  if (profile.generations.empty()) return "nothing";
  return fmt::format("generation {}", profile.generations.back().number);
}

std::string lost_sentence(const Ending& ending) {
  return ending.lost_bytes == 0 ? "" : fmt::format("; {} bytes behind it could not be used", ending.lost_bytes);
}

// Says how the trace ends. `content` is a malformed event or row inside a generation.
void describe_ending(Profile& profile, const TraceReader& reader, const ProfileBuilder& builder,
                     const std::string& name, const Failure& content, const std::optional<EndRow>& end,
                     bool from_tail) {
  Ending& ending = profile.ending;
  const TailState* const tail = reader.tail();
  ending.from_tail = from_tail;
  ending.lost_bytes = reader.lost_bytes();
  ending.damaged = true;  // until it is known better

  // An End row counts only when nothing was recorded in a later generation: an exec may fail.
  uint64_t reason = 0;
  if (end && end->generation >= builder.last_event_generation()) reason = end->reason;
  if (tail != nullptr && tail->ended != 0) reason = tail->ended;
  if (is_end_reason(reason)) {
    ending.has_end = true;
    ending.reason = static_cast<wire::EndReason>(reason);
  }

  if (content) {
    ending.note = content->text();
    if (reader.tail_fault()) ending.note += "; and its tail: " + reader.tail_fault()->text();
    return;
  }
  if (profile.generations.empty() && !reader.fault() && tail == nullptr) {
    ending.note = fmt::format("{}: expected a generation behind the header, found the end of the file", name);
    if (reader.tail_fault()) ending.note += "; and its tail: " + reader.tail_fault()->text();
    return;
  }
  const bool gap = tail != nullptr && !reader.tail_covers();
  if (reader.fault() && (tail == nullptr || gap)) {
    ending.note = reader.fault()->text() + lost_sentence(ending);
    if (reader.tail_fault()) ending.note += "; and its tail: " + reader.tail_fault()->text();
    return;
  }
  if (reader.tail_fault()) {
    ending.note = fmt::format("the trace ends after {}, and its tail cannot be used fully: {}", after_what(profile),
                              reader.tail_fault()->text());
    return;
  }
  if (gap) {
    ending.note = fmt::format("{}: expected generations up to {} before the tail, found {}", name, tail->closed,
                              after_what(profile));
    return;
  }
  if (ending.has_end && is_whole_end(reason)) {
    ending.complete = true;
    ending.damaged = false;
    ending.lost_bytes = 0;  // what the output lacks was in the tail
    return;
  }
  if (ending.has_end) {
    ending.damaged = false;
    ending.note = fmt::format(
        "{}: recording stopped after {} because of {}; the program went on unrecorded", name, after_what(profile),
        ending.reason == wire::EndReason::kDisk ? "an output that could not be written" : "a fault of the recorder");
    return;
  }
  // A trace of another recorder has no End row; its last EndOfGeneration is all there can be.
  if (!builder.contexts().has_process && tail == nullptr) {
    ending.complete = true;
    ending.damaged = false;
    return;
  }
  ending.damaged = tail == nullptr;  // the recorder leaves a tail until it has said its last word
  ending.lost_bytes = tail != nullptr ? 0 : ending.lost_bytes;
  ending.note =
      fmt::format("{}: the recorder's last word is missing after {}{}: the program was killed or still runs", name,
                  after_what(profile),
                  tail != nullptr ? " (what it had recorded was recovered from the tail)" : " and there is no tail");
}

Result<Profile> build(TraceReader& reader, const std::string& name) {
  ProfileBuilder builder(reader.tail());
  Failure content;
  bool from_tail = false;
  bool any = false;
  while (const Generation* gen = reader.next()) {
    any = true;
    from_tail |= gen->from_tail;
    Failure fault = builder.add(*gen);
    if (!fault) continue;
    if (!content) {
      content = std::move(fault);
      content->file = name;
    }
    break;  // what follows a damaged generation would be told against a heap that is not the program's
  }
  if (!any && reader.fault()) return *reader.fault();
  const std::optional<EndRow> end = builder.contexts().end;
  Profile profile = builder.finish();
  describe_ending(profile, reader, builder, name, content, end, from_tail);
  return profile;
}

}  // namespace

Result<Profile> read_profile(const std::string& file, const ReadOptions& options) {
  auto reader = TraceReader::open(file, {options.use_tail, options.progress});
  if (!reader.ok()) return reader.error();
  return build(*reader.value(), file);
}

Result<Profile> read_profile_bytes(std::span<const uint8_t> trace, std::span<const uint8_t> tail,
                                   const std::string& name, const ReadOptions& options) {
  auto reader = TraceReader::from_bytes(trace, tail, name, {options.use_tail, options.progress});
  if (!reader.ok()) return reader.error();
  return build(*reader.value(), name);
}

}  // namespace traceaf::reader
