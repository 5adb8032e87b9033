// The slow side of the cursors (see order.h) and the generic visit of experimental events.
#include "reader/order.h"

#include <fmt/format.h>

#include <algorithm>

namespace traceaf::reader {

std::string describe_fault(DecodeFault fault, uint8_t type) {
  const auto* const spec = wire::find_event(type);
  const std::string name = spec != nullptr ? std::string(spec->name) : fmt::format("event {}", type);
  switch (fault) {
    case DecodeFault::kNone:
      return "";
    case DecodeFault::kNoEvent:
      return fmt::format("expected an event, found invalid event type {}", type);
    case DecodeFault::kNotTimed:
      return fmt::format("expected a timed event, found {}", name);
    case DecodeFault::kCut:
      return fmt::format("expected {} integers of {}, found the end of the batch", kTimedIntegers[type], name);
    case DecodeFault::kTooLong:
      return fmt::format("expected integers of at most 64 bits in {}, found a longer one", name);
    case DecodeFault::kTimeOverflow:
      return fmt::format("expected a timestamp of at most 64 bits for {}, found a larger one", name);
    case DecodeFault::kNoThread:
      return fmt::format("expected a thread for {}, found a batch of none (m = 2^64-1)", name);
  }
  return "";
}

bool ThreadCursor::open_batch() {
  while (next_batch_ < list_->batches.size()) {
    batch_ = &gen_->batches[list_->batches[next_batch_++]];
    const auto body = gen_->body(*batch_);
    if (body.empty()) continue;
    at_ = body.data();
    end_ = at_ + body.size();
    batch_time_ = batch_->time;
    return true;
  }
  return false;
}

// Decodes the next events, all of one batch, into the buffer. False when there are none.
bool ThreadCursor::refill() {
  for (;;) {
    if (at_ == end_ && !open_batch()) return false;
    const uint8_t* const begin = gen_->bytes.data() + batch_->begin;
    const bool no_thread = batch_->m == wire::kNoThread;
    const uint8_t* at = at_;
    uint64_t time = batch_time_;
    Event* out = buffer_;
    Event* const full = out + room_;
    for (;; ++out) {
      if (!no_thread) decode_objects(begin, at, end_, time, out, full);
      if (out == full || at == end_) break;
      out->at = static_cast<uint32_t>(at - begin);
      DecodeFault fault = DecodeFault::kNone;
      const uint8_t* const behind = decode_event(at, end_, time, *out, &fault);
      if (behind != nullptr && no_thread && out->type >= kFirstAllocFree) fault = DecodeFault::kNoThread;
      if (fault != DecodeFault::kNone) [[unlikely]] {
        at_ = at;
        note_fault(fault);
        at = end_;
        break;
      }
      at = behind;
    }
    at_ = at;
    batch_time_ = time;
    if (out == buffer_) continue;
    event_ = buffer_;
    last_ = out;
    return true;
  }
}

void ThreadCursor::note_fault(DecodeFault fault) {
  if (fault_) return;
  Error error;
  error.message = describe_fault(fault, *at_);
  error.offset = batch_->body_offset + static_cast<uint64_t>(at_ - (gen_->bytes.data() + batch_->begin));
  error.generation = gen_->number;
  error.batch = batch_->number;
  if (batch_->from_tail) error.message += " (in the tail)";
  fault_ = std::move(error);
}

namespace {

// The argument names of the AllocFree events, split once.
struct ArgumentNames {
  std::array<std::array<std::string_view, 4>, 256> names{};
  std::array<uint8_t, 256> count{};
  constexpr ArgumentNames() {
    for (const auto& spec : wire::kEvents) {
      if (!wire::is_timed(spec)) continue;
      std::string_view rest = spec.arguments.substr(2);  // behind "dt"
      while (!rest.empty()) {
        rest.remove_prefix(1);
        const size_t space = rest.find(' ');
        names[spec.number][count[spec.number]++] = rest.substr(0, space);
        rest.remove_prefix(space == std::string_view::npos ? rest.size() : space);
      }
    }
  }
};
constexpr ArgumentNames kArgumentNames;

}  // namespace

Failure for_each_experimental_event(const Generation& gen, const std::function<void(const ExperimentalEvent&)>& visit) {
  ExperimentalEvent out;
  return merge_cursors(
      gen, [](const Event&) {},
      [&](const ThreadCursor& cursor) {
        const Event& event = cursor.event();
        if (event.type < kFirstAllocFree) return;
        out.time = cursor.time();
        out.m = gen.threads[cursor.slot()].m;
        out.type = event.type;
        out.name = wire::find_event(event.type)->name;
        out.argument_names = {kArgumentNames.names[event.type].data(), kArgumentNames.count[event.type]};
        std::copy(event.args.begin(), event.args.end(), out.arguments.begin());
        visit(out);
      });
}

}  // namespace traceaf::reader
