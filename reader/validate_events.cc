// Validation of timed events (see validate_checks.h).
#include <fmt/format.h>

#include <algorithm>

#include "reader/heap_model.h"
#include "reader/order.h"
#include "reader/validate_checks.h"

namespace traceaf::reader {
namespace {

using wire::Ev;

constexpr size_t kMaxHeld = 64;

}  // namespace

// Mapping 2 of docs/format.md: a thread is an M with a G of its own in a system call for ever.
void EventChecker::check_status(uint8_t type, uint64_t m, const std::array<uint64_t, 3>& args, const Place& place,
                                uint64_t generation) {
  const auto ev = static_cast<Ev>(type);
  if (m == wire::kNoThread) {
    if (ev != Ev::kGoStatus)
      findings_.error("context", place,
                      fmt::format("expected a thread for {}, found a batch of none", wire::find_event(type)->name));
    return;
  }
  const auto [it, is_new] = threads_.try_emplace(m);
  ThreadState& thread = it->second;
  const bool first = thread.generation != generation;
  thread.generation = generation;
  if (thread.ended) {
    findings_.error(
        "thread-ended", place,
        fmt::format("expected nothing of thread {} behind its end, found {}", m, wire::find_event(type)->name));
    return;
  }
  if (is_new) {
    if (ev != Ev::kGoCreateSyscall) {
      findings_.error("thread-status", place,
                      fmt::format("expected GoCreateSyscall as the first event of thread {}, found {}", m,
                                  wire::find_event(type)->name));
    } else {
      thread.g = args[0];
      const auto [owner, unused] = goroutines_.try_emplace(thread.g, m);
      if (!unused) {
        findings_.error("thread-status", place,
                        fmt::format("expected a goroutine of its own for thread {}, found {} of thread {}", m, thread.g,
                                    owner->second));
      }
    }
    return;
  }
  if (first) {
    if (ev != Ev::kGoStatus || args[0] != thread.g || args[1] != m || args[2] != wire::kGoStatusSyscall) {
      findings_.error(
          "thread-status", place,
          fmt::format(
              "expected GoStatus g={} m={} gstatus={} as the first event of thread {} in this generation, found {}",
              thread.g, m, wire::kGoStatusSyscall, m, wire::find_event(type)->name));
    }
    return;
  }
  if (ev == Ev::kGoDestroySyscall) {
    thread.ended = true;
  } else if (type < kFirstAllocFree) {
    findings_.error(
        "context", place,
        fmt::format("expected an AllocFree event or the end of thread {}, found {}", m, wire::find_event(type)->name));
  }
}

// ---- births and deaths alternate -----------------------------------------------------------------------------------

void EventChecker::commit(const Held& held) {
  if (held.message.empty()) return;
  findings_.error(held.birth ? "double-birth" : "unknown-death", held.place, held.message);
}

void EventChecker::settle(uint64_t now, bool all) {
  size_t kept = 0;
  for (size_t i = 0; i < held_.size(); ++i) {
    // Time may step back at the border of two generations.
    if (!all && now - std::min(now, held_[i].time) <= inversion_) {
      if (kept != i) held_[kept] = std::move(held_[i]);
      ++kept;
    } else {
      commit(held_[i]);
    }
  }
  held_.resize(kept);
  if (held_.size() > kMaxHeld) {
    commit(held_.front());
    held_.erase(held_.begin());
  }
}

void EventChecker::born(Kind& kind, uint64_t address, uint64_t time, uint64_t m, const Place& place) {
  bool doubtful = false;
  if (!held_.empty()) {
    settle(time, false);
    const auto match = std::find_if(held_.begin(), held_.end(), [&](const Held& h) {
      return h.kind == &kind && !h.birth && h.address == address && h.m != m;
    });
    if (match != held_.end() && match->message.empty()) {
      doubtful = true;
      held_.erase(match);
    } else if (match != held_.end()) {
      findings_.warning(
          "inverted-pair", place,
          fmt::format("expected the birth of {} 0x{:x} before its death, found it shortly after", kind.name, address));
      held_.erase(match);
      return;
    }
  }
  const auto [it, is_new] = kind.alive.try_emplace(address, Birth{time, m, doubtful});
  if (is_new) return;
  if (it->second.doubtful) {
    it.value() = {time, m};
    return;
  }
  held_.push_back({&kind, address, time, m, true, place,
                   fmt::format("expected no {} at 0x{:x} before its birth, found one born at {} by thread {}",
                               kind.name, address, it->second.time, it->second.m)});
  it.value() = {time, m};
}

void EventChecker::died(Kind& kind, uint64_t address, uint64_t time, uint64_t m, const Place& place) {
  if (!held_.empty()) {
    settle(time, false);
    const auto match = std::find_if(held_.begin(), held_.end(), [&](const Held& h) {
      return h.kind == &kind && h.birth && h.address == address && h.m != m;
    });
    if (match != held_.end()) {
      findings_.warning("inverted-pair", place,
                        fmt::format("expected the death of {} 0x{:x} before its next birth, found it shortly after",
                                    kind.name, address));
      held_.erase(match);
      return;
    }
  }
  if (kind.alive.erase(address) != 0) return;
  std::string message;
  if (defined_.live_exact) {
    message = fmt::format("expected a live {} at 0x{:x}, found none to free", kind.name, address);
  }
  held_.push_back({&kind, address, time, m, false, place, std::move(message)});
}

void EventChecker::generation(const Generation& gen, const Definitions& defined) {
  defined_ = defined;
  inversion_ = std::max<uint64_t>(1, gen.sync.frequency / (1'000'000'000 / HeapModel::kInversionNs));
  static_assert(1'000'000'000 % HeapModel::kInversionNs == 0);
  if (defined.resumed) {
    settle(0, true);
    objects_.alive.clear();
    spans_.alive.clear();
    stacks_.alive.clear();
  }
  std::vector<uint64_t> last_time(gen.threads.size());
  const auto check = [&](const ThreadCursor& cursor) {
    const Event& event = cursor.event();
    const uint64_t m = gen.threads[cursor.slot()].m;
    const Place place{cursor.offset(), gen.number, cursor.batch().number};
    ++report_.events;
    if (defined_.ours && event.time < last_time[cursor.slot()]) {
      findings_.error(
          "time-back", place,
          fmt::format("expected a time from {} on thread {}, found {}", last_time[cursor.slot()], m, event.time));
    }
    last_time[cursor.slot()] = std::max(last_time[cursor.slot()], event.time);
    if (defined_.ours) check_status(event.type, m, event.args, place, gen.number);
    if (event.type < kFirstAllocFree) return;
    ++report_.allocfree_events;
    const auto ev = static_cast<Ev>(event.type);
    const uint64_t id = event.args[0];
    if (ev == Ev::kHeapObject || ev == Ev::kHeapObjectAlloc) {
      const uint64_t type = event.args[1];
      if (!defined_.types.contains(type) && (type != 0 || defined_.ours)) {
        findings_.error("type-undefined", place,
                        fmt::format("expected type {} defined in this generation, found no row", type));
      }
    }
    if (!defined_.ours) return;  // Go's tiny allocator has several births in one block
    switch (ev) {
      case Ev::kHeapObject:
        objects_.alive.try_emplace(gen.info.object_address(id), Birth{cursor.time(), m});
        break;
      case Ev::kHeapObjectAlloc:
        born(objects_, gen.info.object_address(id), cursor.time(), m, place);
        break;
      case Ev::kHeapObjectFree:
        died(objects_, gen.info.object_address(id), cursor.time(), m, place);
        break;
      case Ev::kSpan:
      case Ev::kSpanAlloc:
        if (event.args[1] == 0) findings_.error("span-empty", place, "expected a span of at least one page, found 0");
        if (ev == Ev::kSpan) {
          spans_.alive.try_emplace(gen.info.span_address(id), Birth{cursor.time(), m});
        } else {
          born(spans_, gen.info.span_address(id), cursor.time(), m, place);
        }
        break;
      case Ev::kSpanFree:
        died(spans_, gen.info.span_address(id), cursor.time(), m, place);
        break;
      case Ev::kGoroutineStack:
        stacks_.alive.try_emplace(gen.info.stack_address(id), Birth{cursor.time(), m});
        break;
      case Ev::kGoroutineStackAlloc:
        born(stacks_, gen.info.stack_address(id), cursor.time(), m, place);
        break;
      case Ev::kGoroutineStackFree:
        died(stacks_, gen.info.stack_address(id), cursor.time(), m, place);
        break;
      default:
        break;
    }
  };
  const Failure fault = merge_cursors(
      gen, [](const Event&) {}, check);
  if (fault) findings_.error("event", *fault);
  for (const auto& thread : gen.threads) {
    if (!defined_.ours || thread.m == wire::kNoThread || defined_.threads.contains(thread.m)) continue;
    findings_.warning("thread-undefined", {gen.offset, gen.number, {}},
                      fmt::format("expected a Thread row for thread {} in this generation, found none", thread.m));
  }
}

void EventChecker::finish() { settle(0, true); }

}  // namespace traceaf::reader
