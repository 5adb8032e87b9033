// Generations into a Profile (see profile_builder.h).
#include "reader/profile_builder.h"

#include <algorithm>
#include <utility>

namespace traceaf::reader {
namespace {

using wire::Ev;

constexpr uint32_t kNoThreadIndex = ~uint32_t{0};

}  // namespace

ProfileBuilder::ProfileBuilder(const TailState* tail) : tail_(tail), heap_(contexts_, profile_), spans_(profile_) {}

// Times count from the start of the process image's recording, which the Process row or the tail names. In a trace of
// another recorder the first timestamp of the first generation serves.
void ProfileBuilder::set_clock(const Generation& gen) {
  const Sync before = std::exchange(sync_, gen.sync);
  if (frequency_ == gen.sync.frequency) return;
  if (frequency_ == 0) {
    if (contexts_.start_time) {
      origin_ = *contexts_.start_time;
    } else if (tail_ != nullptr) {
      origin_ = tail_->start_time;
    } else {
      origin_ = gen.sync.time;
      for (const Batch& batch : gen.batches) origin_ = std::min(origin_, batch.time);
    }
  } else {
    // Another unit from here on, or the same clock measured better: the monotonic clock of both Syncs ties them
    // together.
    origin_ns_ = ns(before.time) + (std::max(gen.sync.mono_ns, before.mono_ns) - before.mono_ns);
    origin_ = gen.sync.time;
  }
  frequency_ = gen.sync.frequency;
  scale_ = TimeScale(frequency_);
}

// Off and standby end a generation, on begins one, so that what happened to the heap in between belongs to the
// generation's start.
void ProfileBuilder::apply_markers(const Generation& gen) {
  bool resumed = false;
  for (const MarkerRow& marker : contexts_.markers()) {
    const auto kind = static_cast<wire::MarkerKind>(marker.kind);
    if (kind == wire::MarkerKind::kOn) {
      resumed |= !recording_;
      recording_ = true;
    } else if (kind == wire::MarkerKind::kOff || kind == wire::MarkerKind::kStandby) {
      recording_ = false;
    }
  }
  if (resumed) {
    heap_.restart(contexts_.live_exact);
    spans_.restart();
  }
  heap_.set_exact(!contexts_.has_process || contexts_.live_exact);
}

void ProfileBuilder::count_structure(const Generation& gen) {
  auto& counts = profile_.events_by_type;
  for (const Batch& batch : gen.batches) {
    ++counts[static_cast<uint8_t>(batch.experiment != 0 ? Ev::kExperimentalBatch : Ev::kEventBatch)];
    const auto body = gen.body(batch);
    if (batch.experiment != 0 || body.empty() || (body[0] != static_cast<uint8_t>(Ev::kSync))) continue;
    ++counts[static_cast<uint8_t>(Ev::kSync)];
    ++counts[static_cast<uint8_t>(Ev::kFrequency)];
    ++counts[static_cast<uint8_t>(Ev::kClockSnapshot)];
  }
  if (gen.complete) ++counts[static_cast<uint8_t>(Ev::kEndOfGeneration)];
}

Failure ProfileBuilder::add(const Generation& gen) {
  gen_ = &gen;
  info_ = gen.info;
  Failure rows_fault = contexts_.begin_generation(gen);
  set_clock(gen);
  apply_markers(gen);
  count_structure(gen);
  if (profile_.clock_freq == 0) {
    profile_.clock_freq = gen.sync.frequency;
    profile_.min_addr = gen.info.min_addr;
    profile_.page_size = gen.info.page_size;
    if (profile_.process.start_wall_ns == 0) profile_.process.start_wall_ns = gen.sync.wall_ns;
  }
  slot_threads_.clear();
  for (const auto& thread : gen.threads) {
    slot_threads_.push_back(thread.m == wire::kNoThread ? kNoThreadIndex : contexts_.thread_index(thread.m));
  }
  for (const auto& [time, bytes] : contexts_.rss()) timeline_.sample_rss(ns(time), bytes);

  allocfree_ = 0;
  gen_first_.reset();
  heap_.begin_generation();
  // Of an event that is not about an object prefetch() touches a line in vain.
  Failure events_fault = merge_cursors(
      gen, [this](const Event& event) { heap_.prefetch(info_.object_address(event.args[0]), event.args[1]); },
      [this](const ThreadCursor& cursor) { visit(cursor.slot(), cursor.event(), cursor.time()); });
  heap_.end_generation();

  GenerationInfo out;
  out.number = gen.number;
  out.first_ns = gen_first_.value_or(now_);
  out.last_ns = now_;
  out.events = allocfree_;
  out.batches = gen.batches.size();
  out.bytes = gen.plain_bytes;
  out.complete = gen.complete;
  profile_.generations.push_back(out);
  profile_.events += allocfree_;
  if (allocfree_ != 0) last_event_generation_ = gen.number;
  return events_fault ? events_fault : rows_fault;
}

void ProfileBuilder::visit(uint32_t slot, const Event& event, uint64_t time) {
  ++profile_.events_by_type[event.type];
  now_ = std::max(now_, ns(time));
  if (!gen_first_) [[unlikely]] {
    gen_first_ = now_;
    if (!first_) first_ = now_;
  }
  if (event.type < kFirstAllocFree) return;
  const uint32_t thread = slot_threads_[slot];  // never kNoThreadIndex: the cursor refuses such AllocFree events
  ++allocfree_;
  ++contexts_.threads[thread].events;
  switch (static_cast<Ev>(event.type)) {
    case Ev::kHeapObjectAlloc:
      heap_.born(thread, info_.object_address(event.args[0]), event.args[1], now_);
      break;
    case Ev::kHeapObjectFree:
      heap_.died(thread, info_.object_address(event.args[0]), now_);
      break;
    case Ev::kHeapObject:
      heap_.exists(info_.object_address(event.args[0]), event.args[1], now_);
      break;
    case Ev::kSpan:
    case Ev::kSpanAlloc:
      spans_.add(info_.span_address(event.args[0]), event.args[1] * info_.page_size, event.args[2],
                 contexts_.span_info(event.args[0], gen_->threads[slot].m),
                 event.type == static_cast<uint8_t>(Ev::kSpanAlloc));
      return;
    case Ev::kSpanFree:
      spans_.remove(info_.span_address(event.args[0]));
      return;
    case Ev::kGoroutineStack:
    case Ev::kGoroutineStackAlloc:
      ++profile_.stacks_born;
      return;
    case Ev::kGoroutineStackFree:
      ++profile_.stacks_freed;
      return;
    default:
      return;
  }
  timeline_.observe(now_, profile_.live, profile_.allocated);
}

Profile ProfileBuilder::finish() {
  heap_.finish();
  spans_.finish();
  contexts_.break_cycles();
  profile_.timeline = timeline_.finish(now_, profile_.live, profile_.allocated);
  profile_.duration_ns = first_ ? now_ - *first_ : 0;
  const uint64_t sync_wall = profile_.process.start_wall_ns;
  profile_.process = std::move(contexts_.process);
  if (!contexts_.has_process) profile_.process.start_wall_ns = sync_wall;
  profile_.counters = contexts_.counters;
  if (tail_ != nullptr) {
    // The tail's counters are those of the last moment.
    profile_.counters = tail_->counters;
    if (profile_.process.pid == 0) profile_.process.pid = tail_->pid;
  }
  for (size_t i = 0; i < contexts_.threads.size(); ++i) contexts_.threads[i].birth_ns = ns(contexts_.thread_births[i]);
  profile_.threads = std::move(contexts_.threads);
  std::sort(profile_.threads.begin(), profile_.threads.end(),
            [](const Thread& a, const Thread& b) { return a.m < b.m; });
  profile_.nodes = std::move(contexts_.nodes);
  profile_.modules = std::move(contexts_.modules);
  return std::move(profile_);
}

}  // namespace traceaf::reader
