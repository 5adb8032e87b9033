// Generations from the output and its tail (see generation_source.h).
#include "reader/generation_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "reader/input.h"
#include "reader/tables.h"

namespace traceaf::reader {
namespace {

// A generation of ours has about 64 MiB in some thousand batches. These bound what a hostile file can make us hold: a
// batch costs some hundred bytes even when it is empty.
constexpr size_t kMaxGenerationBytes = size_t{1} << 30;
constexpr size_t kMaxBatches = size_t{1} << 20;
constexpr size_t kMaxKeptBytes = size_t{160} << 20;
constexpr uint64_t kProgressBatches = 256;

}  // namespace

void GenerationSource::report_progress(bool force) {
  if (!progress || (!force && ++batches_read_ % kProgressBatches != 0)) return;
  progress(raw_->input().file_position(), raw_->input().file_size());
}

void GenerationSource::fail(std::string message, uint64_t offset, bool is_cut) {
  Error error;
  error.message = std::move(message);
  error.file = raw_->input().name();
  error.offset = offset;
  if (gen_.number != 0) error.generation = gen_.number;
  state_.fault = std::move(error);
  state_.cut = is_cut;
}

// Empties gen_, keeping the memory of its bytes when that is of the usual size.
void GenerationSource::start_generation() {
  std::vector<uint8_t> bytes = std::move(gen_.bytes);
  bytes.clear();
  if (bytes.capacity() > kMaxKeptBytes) bytes = {};
  gen_ = Generation();
  gen_.bytes = std::move(bytes);
}

// Takes the batch whose frame was read into the generation. False on a fault.
bool GenerationSource::take_batch() {
  const RawReader::Frame& frame = raw_->frame();
  const auto refuse = [&](std::string message) {
    fail(std::move(message), frame.offset, false);
    state_.spoiled = frame.header_bytes;
    return false;
  };
  if (gen_.batches.empty()) {
    if (frame.gen <= last_number_)
      return refuse(fmt::format("expected a generation above {}, found {}", last_number_, frame.gen));
    gen_.number = frame.gen;
    gen_.offset = frame.offset;
  } else if (frame.gen != gen_.number) {
    return refuse(fmt::format("expected a batch or the end of generation {}, found a batch of generation {}",
                              gen_.number, frame.gen));
  }
  if (gen_.bytes.size() + frame.size > kMaxGenerationBytes)
    return refuse(fmt::format("expected a generation of at most {} bytes, found a larger one", kMaxGenerationBytes));
  if (gen_.batches.size() == kMaxBatches)
    return refuse(fmt::format("expected a generation of at most {} batches, found more", kMaxBatches));
  Batch batch;
  batch.m = frame.m;
  batch.time = frame.time;
  batch.offset = frame.offset;
  batch.body_offset = frame.offset + frame.header_bytes;
  batch.number = gen_.batches.size() + 1;
  batch.experiment = frame.experiment;
  batch.begin = gen_.bytes.size();
  if (!raw_->take_body(gen_.bytes)) {
    gen_.bytes.resize(batch.begin);
    state_.fault = raw_->fault();
    state_.cut = raw_->cut();
    state_.spoiled = raw_->spoiled();
    return false;
  }
  batch.end = gen_.bytes.size();
  gen_.plain_bytes += frame.header_bytes + frame.size;
  gen_.batches.push_back(batch);
  report_progress(false);
  return true;
}

// Reads batches up to EndOfGeneration, the end of the output or a fault. False when there was no whole batch.
bool GenerationSource::read_output_generation() {
  while (!stop.load(std::memory_order_relaxed)) {
    switch (raw_->next()) {
      case RawReader::Item::kBatch:
        if (take_batch()) continue;
        return !gen_.batches.empty();
      case RawReader::Item::kEndOfGeneration:
        if (gen_.batches.empty()) {
          fail("expected a batch, found the end of a generation", raw_->frame().offset, false);
          return false;
        }
        gen_.plain_bytes += 1;
        gen_.complete = true;
        return true;
      case RawReader::Item::kEnd:
        if (gen_.batches.empty()) return false;
        fail(fmt::format("expected the end of generation {}, found the end of the input", gen_.number),
             raw_->input().offset(), true);
        return true;
      case RawReader::Item::kFault:
        state_.fault = raw_->fault();
        state_.cut = raw_->cut();
        return !gen_.batches.empty();
    }
  }
  return false;
}

// Adds the slots from `first` on that belong to this generation and are not in the output.
void GenerationSource::add_tail_slots(size_t first) {
  std::set<std::tuple<uint64_t, uint64_t, bool>> known;
  for (const Batch& batch : gen_.batches) known.emplace(batch.m, batch.time, batch.experiment != 0);
  for (size_t i = first; i < tail_->slots.size() && tail_->slots[i].gen == gen_.number; ++i) {
    const TailSlot& slot = tail_->slots[i];
    if (!known.emplace(slot.m, slot.time, slot.rows).second) continue;
    Batch batch;
    batch.m = slot.m;
    batch.time = slot.time;
    batch.offset = batch.body_offset = slot.offset;
    batch.number = gen_.batches.size() + 1;
    batch.experiment = slot.rows ? wire::kExperimentAllocFree : 0;
    batch.from_tail = true;
    batch.begin = gen_.bytes.size();
    gen_.bytes.insert(gen_.bytes.end(), tail_->bytes.begin() + static_cast<ptrdiff_t>(slot.begin),
                      tail_->bytes.begin() + static_cast<ptrdiff_t>(slot.end));
    batch.end = gen_.bytes.size();
    gen_.plain_bytes += batch.end - batch.begin;
    gen_.batches.push_back(batch);
    gen_.from_tail = true;
  }
}

// Sorts the batches by what they are and finds Sync and info. False when the generation cannot be used; then
// state_.fault is set, unless it was before.
bool GenerationSource::finish_generation() {
  std::optional<Sync> sync;
  std::optional<HeapInfo> info;
  Failure wrong = index_generation(gen_, raw_->input().name(), &sync, &info);
  if (wrong) {
    if (!state_.fault) state_.fault = wrong;
    state_.cut = false;
    return false;
  }
  if (!sync && gen_.complete) {
    fail(fmt::format("expected a Sync batch in generation {}, found none", gen_.number), gen_.offset, false);
    return false;
  }
  if (!sync && tail_) {
    sync = Sync{tail_->start_time, tail_->clock_freq, tail_->start_mono_ns, tail_->start_wall_ns, true};
  }
  if (!sync) sync = previous_sync_;
  if (!sync) return false;  // cut before the first Sync: no time has a meaning; the fault says where
  gen_.has_info = info.has_value();
  if (!info && tail_ && !gen_.complete) {
    info = HeapInfo{};
    info->min_addr = tail_->min_addr;
    info->page_size = tail_->page_size;
  }
  if (!info) info = previous_info_;
  gen_.sync = *sync;
  gen_.info = info.value_or(HeapInfo{});
  previous_sync_ = gen_.sync;
  if (info) previous_info_ = info;
  last_number_ = gen_.number;
  if (gen_.complete) state_.last_complete = gen_.number;
  return true;
}

SourceState GenerationSource::state() const {
  SourceState out = state_;
  out.unread = raw_->input().unread();
  return out;
}

bool GenerationSource::next() {
  if (stage_ == Stage::kOutput) {
    start_generation();
    const bool some = read_output_generation();
    report_progress(true);
    if (!gen_.complete) stage_ = tail_ ? Stage::kTail : Stage::kDone;
    if (some) {
      if (!gen_.complete && tail_) add_tail_slots(tail_->first_above(gen_.number - 1));
      if (finish_generation()) return true;
      // What follows an unusable whole generation would be read without its facts.
      if (gen_.complete) stage_ = Stage::kDone;
      last_number_ = gen_.number;
    }
  }
  while (stage_ == Stage::kTail) {
    const size_t first = tail_->first_above(std::max(last_number_, state_.last_complete));
    if (first == tail_->slots.size()) break;
    start_generation();
    gen_.number = tail_->slots[first].gen;
    gen_.offset = tail_->slots[first].offset;
    add_tail_slots(first);
    if (finish_generation()) return true;
    last_number_ = gen_.number;
  }
  stage_ = Stage::kDone;
  return false;
}

}  // namespace traceaf::reader
