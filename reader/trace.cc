// Generations from the output and its tail (see trace.h).
#include "reader/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "reader/input.h"
#include "reader/raw_reader.h"
#include "reader/tables.h"
#include "reader/tail.h"

namespace traceaf::reader {
namespace {

// A generation of ours has about 16 MiB. This bounds what a hostile file can make us hold.
constexpr size_t kMaxGenerationBytes = size_t{1} << 30;
constexpr uint64_t kProgressBatches = 256;

}  // namespace

struct TraceReader::Impl {
  enum class Stage : uint8_t { kOutput, kTail, kDone };

  std::unique_ptr<RawReader> raw;
  TraceOptions options;
  std::string tail_name;
  std::optional<TailState> tail;
  Failure tail_fault;
  Stage stage = Stage::kOutput;
  Generation gen;
  Failure fault;
  bool cut = false;            // the fault is that the output ends too early
  uint64_t last_complete = 0;  // number of the last generation ended by EndOfGeneration
  uint64_t last_number = 0;    // of the last generation given out
  std::optional<Sync> previous_sync;
  std::optional<HeapInfo> previous_info;
  uint64_t spoiled = 0;
  uint64_t batches_read = 0;

  const Generation* next();
  void start_generation();
  bool read_output_generation();
  bool take_batch();
  void add_tail_slots(size_t first);
  bool finish_generation();
  void report_progress(bool force);
  void stop(std::string message, uint64_t offset, bool is_cut);
};

void TraceReader::Impl::report_progress(bool force) {
  if (!options.progress || (!force && ++batches_read % kProgressBatches != 0)) return;
  options.progress(raw->input().file_position(), raw->input().file_size());
}

void TraceReader::Impl::stop(std::string message, uint64_t offset, bool is_cut) {
  Error error;
  error.message = std::move(message);
  error.file = raw->input().name();
  error.offset = offset;
  if (gen.number != 0) error.generation = gen.number;
  fault = std::move(error);
  cut = is_cut;
}

// Empties `gen`, keeping the memory of its bytes.
void TraceReader::Impl::start_generation() {
  std::vector<uint8_t> bytes = std::move(gen.bytes);
  bytes.clear();
  gen = Generation();
  gen.bytes = std::move(bytes);
}

// Takes the batch whose frame was read into the generation. False on a fault.
bool TraceReader::Impl::take_batch() {
  const RawReader::Frame& frame = raw->frame();
  if (gen.batches.empty()) {
    if (frame.gen <= last_number) {
      stop(fmt::format("expected a generation above {}, found {}", last_number, frame.gen), frame.offset, false);
      spoiled = frame.header_bytes;
      return false;
    }
    gen.number = frame.gen;
    gen.offset = frame.offset;
  } else if (frame.gen != gen.number) {
    stop(fmt::format("expected a batch or the end of generation {}, found a batch of generation {}", gen.number,
                     frame.gen),
         frame.offset, false);
    spoiled = frame.header_bytes;
    return false;
  }
  if (gen.bytes.size() + frame.size > kMaxGenerationBytes) {
    stop(fmt::format("expected a generation of at most {} bytes, found a larger one", kMaxGenerationBytes),
         frame.offset, false);
    spoiled = frame.header_bytes;
    return false;
  }
  Batch batch;
  batch.m = frame.m;
  batch.time = frame.time;
  batch.offset = frame.offset;
  batch.body_offset = frame.offset + frame.header_bytes;
  batch.number = gen.batches.size() + 1;
  batch.experiment = frame.experiment;
  batch.begin = gen.bytes.size();
  if (!raw->take_body(gen.bytes)) {
    gen.bytes.resize(batch.begin);
    fault = raw->fault();
    cut = raw->cut();
    spoiled = raw->spoiled();
    return false;
  }
  batch.end = gen.bytes.size();
  gen.plain_bytes += frame.header_bytes + frame.size;
  gen.batches.push_back(batch);
  report_progress(false);
  return true;
}

// Reads batches up to EndOfGeneration, the end of the output or a fault. False when there was no whole batch.
bool TraceReader::Impl::read_output_generation() {
  for (;;) {
    switch (raw->next()) {
      case RawReader::Item::kBatch:
        if (take_batch()) continue;
        return !gen.batches.empty();
      case RawReader::Item::kEndOfGeneration:
        if (gen.batches.empty()) {
          stop("expected a batch, found the end of a generation", raw->frame().offset, false);
          return false;
        }
        gen.plain_bytes += 1;
        gen.complete = true;
        return true;
      case RawReader::Item::kEnd:
        if (gen.batches.empty()) return false;
        stop(fmt::format("expected the end of generation {}, found the end of the input", gen.number),
             raw->input().offset(), true);
        return true;
      case RawReader::Item::kFault:
        fault = raw->fault();
        cut = raw->cut();
        return !gen.batches.empty();
    }
  }
}

// Adds the slots from `first` on that belong to this generation and are not in the output.
void TraceReader::Impl::add_tail_slots(size_t first) {
  std::set<std::tuple<uint64_t, uint64_t, bool>> known;
  for (const Batch& batch : gen.batches) known.emplace(batch.m, batch.time, batch.experiment != 0);
  for (size_t i = first; i < tail->slots.size() && tail->slots[i].gen == gen.number; ++i) {
    const TailSlot& slot = tail->slots[i];
    if (!known.emplace(slot.m, slot.time, slot.rows).second) continue;
    Batch batch;
    batch.m = slot.m;
    batch.time = slot.time;
    batch.offset = batch.body_offset = slot.offset;
    batch.number = gen.batches.size() + 1;
    batch.experiment = slot.rows ? wire::kExperimentAllocFree : 0;
    batch.from_tail = true;
    batch.begin = gen.bytes.size();
    gen.bytes.insert(gen.bytes.end(), tail->bytes.begin() + static_cast<ptrdiff_t>(slot.begin),
                     tail->bytes.begin() + static_cast<ptrdiff_t>(slot.end));
    batch.end = gen.bytes.size();
    gen.plain_bytes += batch.end - batch.begin;
    gen.batches.push_back(batch);
    gen.from_tail = true;
  }
}

// Sorts the batches by what they are and finds Sync and info. False when the generation cannot be used; then fault is
// set, unless it was before.
bool TraceReader::Impl::finish_generation() {
  std::optional<Sync> sync;
  std::optional<HeapInfo> info;
  Failure wrong = index_generation(gen, raw->input().name(), &sync, &info);
  if (wrong) {
    if (!fault) fault = wrong;
    cut = false;
    return false;
  }
  if (!sync && gen.complete) {
    stop(fmt::format("expected a Sync batch in generation {}, found none", gen.number), gen.offset, false);
    return false;
  }
  if (!sync && tail) {
    sync = Sync{tail->start_time, tail->clock_freq, tail->start_mono_ns, tail->start_wall_ns, true};
  }
  if (!sync) sync = previous_sync;
  if (!sync) return false;  // cut before the first Sync: no time has a meaning; `fault` says where it was cut
  gen.has_info = info.has_value();
  if (!info && tail && !gen.complete) {
    info = HeapInfo{};
    info->min_addr = tail->min_addr;
    info->page_size = tail->page_size;
  }
  if (!info) info = previous_info;
  gen.sync = *sync;
  gen.info = info.value_or(HeapInfo{});
  previous_sync = gen.sync;
  if (info) previous_info = info;
  last_number = gen.number;
  if (gen.complete) last_complete = gen.number;
  return true;
}

const Generation* TraceReader::Impl::next() {
  if (stage == Stage::kOutput) {
    start_generation();
    const bool some = read_output_generation();
    report_progress(true);
    if (!gen.complete) stage = tail ? Stage::kTail : Stage::kDone;
    if (some) {
      if (!gen.complete && tail) add_tail_slots(tail->first_above(gen.number - 1));
      if (finish_generation()) return &gen;
      // What follows an unusable whole generation would be read without its facts.
      if (gen.complete) stage = Stage::kDone;
      last_number = gen.number;
    }
  }
  while (stage == Stage::kTail) {
    const size_t first = tail->first_above(std::max(last_number, last_complete));
    if (first == tail->slots.size()) break;
    start_generation();
    gen.number = tail->slots[first].gen;
    gen.offset = tail->slots[first].offset;
    add_tail_slots(first);
    if (finish_generation()) return &gen;
    last_number = gen.number;
  }
  stage = Stage::kDone;
  return nullptr;
}

TraceReader::TraceReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceReader::~TraceReader() = default;

Result<std::unique_ptr<TraceReader>> TraceReader::open(const std::string& file, TraceOptions options) {
  auto impl = std::make_unique<Impl>();
  // The tail first: what it no longer has when we look at it is in the output by the time we read that.
  if (options.use_tail) {
    auto tail = read_tail(file + ".tail");
    if (tail.ok()) {
      impl->tail = std::move(tail.value());
      impl->tail_fault = impl->tail->fault;
    } else if (tail.error().offset) {
      impl->tail_fault = tail.error();  // there is one, but it cannot be used
    }
  }
  auto input = Input::open(file);
  if (!input.ok()) return input.error();
  auto raw = RawReader::start(std::move(input.value()));
  if (!raw.ok()) return raw.error();
  impl->raw = std::move(raw.value());
  impl->options = std::move(options);
  return std::unique_ptr<TraceReader>(new TraceReader(std::move(impl)));
}

Result<std::unique_ptr<TraceReader>> TraceReader::from_bytes(std::span<const uint8_t> trace,
                                                             std::span<const uint8_t> tail, const std::string& name,
                                                             TraceOptions options) {
  auto impl = std::make_unique<Impl>();
  if (options.use_tail && !tail.empty()) {
    auto state = read_tail_bytes(tail, name + ".tail");
    if (state.ok()) {
      impl->tail = std::move(state.value());
      impl->tail_fault = impl->tail->fault;
    } else {
      impl->tail_fault = state.error();
    }
  }
  auto input = Input::from_bytes(trace, name);
  if (!input.ok()) return input.error();
  auto raw = RawReader::start(std::move(input.value()));
  if (!raw.ok()) return raw.error();
  impl->raw = std::move(raw.value());
  impl->options = std::move(options);
  return std::unique_ptr<TraceReader>(new TraceReader(std::move(impl)));
}

const Generation* TraceReader::next() { return impl_->next(); }
const Failure& TraceReader::fault() const { return impl_->fault; }
const TailState* TraceReader::tail() const { return impl_->tail ? &*impl_->tail : nullptr; }
const Failure& TraceReader::tail_fault() const { return impl_->tail_fault; }
bool TraceReader::compressed() const { return impl_->raw->input().compressed(); }

bool TraceReader::tail_covers() const {
  return impl_->tail && !impl_->tail_fault && (!impl_->fault || impl_->cut) &&
         impl_->last_complete >= impl_->tail->closed;
}

uint64_t TraceReader::lost_bytes() const { return impl_->fault ? impl_->spoiled + impl_->raw->input().unread() : 0; }

}  // namespace traceaf::reader
