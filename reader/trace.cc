// Generations handed out, read ahead on a second thread where that pays (see trace.h).
#include "reader/trace.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "reader/generation_source.h"

namespace traceaf::reader {
namespace {

constexpr uint64_t kLeastAhead = 1 << 20;  // bytes of the file left for which a thread is worth its start
// Of a larger generation the next one is read only when it is asked for, so that two of them are never held.
constexpr size_t kMostHeld = size_t{96} << 20;
constexpr auto kProgressInterval = std::chrono::milliseconds(100);

bool has_second_processor() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
}

}  // namespace

struct TraceReader::Impl {
  Impl(std::unique_ptr<RawReader> raw, std::optional<TailState> tail, Failure tail_fault, TraceOptions with)
      : source(std::move(raw), std::move(tail), std::move(tail_fault)), options(std::move(with)) {}
  ~Impl();

  const Generation* next();
  void start_thread();
  void read_ahead();
  const Generation* take();

  GenerationSource source;  // the thread's, once there is one
  TraceOptions options;
  SourceState state;  // after the generation handed out last
  bool started = false;

  enum class Phase : uint8_t {
    kIdle,     // the thread waits until the next generation is wanted
    kReading,  // it is, or it is under way
    kFilled    // `ready` is to be taken
  };

  std::thread thread;
  std::mutex mutex;  // guards what follows, except `position` and `current`
  std::condition_variable changed;
  Phase phase = Phase::kIdle;
  bool more = true;  // once filled: `ready` holds a generation; false: there was none left, and the thread ends
  Generation ready;
  SourceState ready_state;
  std::exception_ptr error;
  std::atomic<uint64_t> position = 0;
  Generation current;  // the caller's
};

TraceReader::Impl::~Impl() {
  if (!thread.joinable()) return;
  {
    const std::lock_guard lock(mutex);
    source.stop = true;
  }
  changed.notify_all();
  thread.join();
}

// Reading goes on without the thread where it cannot be had.
void TraceReader::Impl::start_thread() {
  const uint64_t left = source.file_size() - std::min(source.file_size(), source.file_position());
  if (!options.read_ahead || !source.compressed() || left < kLeastAhead || !has_second_processor()) return;
  std::swap(current, source.generation());  // its memory is needed no more; the caller is done with it
  if (options.progress) {
    source.progress = [this](uint64_t done, uint64_t) { position.store(done, std::memory_order_relaxed); };
  }
  phase = Phase::kReading;
  try {
    thread = std::thread([this] { read_ahead(); });
  } catch (const std::system_error&) {
    source.progress = options.progress;
  }
}

// The thread: one generation whenever it is wanted.
void TraceReader::Impl::read_ahead() {
  std::unique_lock lock(mutex);
  do {
    changed.wait(lock, [this] { return phase == Phase::kReading || source.stop; });
    if (source.stop) return;
    std::swap(ready, source.generation());
    lock.unlock();
    bool some = false;
    std::exception_ptr thrown;
    try {
      some = source.next();
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    std::swap(ready, source.generation());
    ready_state = source.state();
    error = thrown;
    more = some;
    phase = Phase::kFilled;
    changed.notify_all();
  } while (more);
}

// What the thread has read, waiting for it.
const Generation* TraceReader::Impl::take() {
  std::unique_lock lock(mutex);
  if (phase == Phase::kIdle) {
    phase = Phase::kReading;
    changed.notify_all();
  }
  while (!changed.wait_for(lock, kProgressInterval, [this] { return phase == Phase::kFilled; })) {
    if (options.progress) options.progress(position.load(std::memory_order_relaxed), source.file_size());
  }
  if (error) std::rethrow_exception(error);
  state = ready_state;
  if (!more) return nullptr;
  std::swap(current, ready);
  phase = current.bytes.size() <= kMostHeld ? Phase::kReading : Phase::kIdle;
  changed.notify_all();
  lock.unlock();
  if (options.progress) options.progress(position.load(std::memory_order_relaxed), source.file_size());
  return &current;
}

const Generation* TraceReader::Impl::next() {
  // Many a caller wants the first generation only.
  if (started && !thread.joinable()) start_thread();
  if (thread.joinable()) return take();
  if (!started) source.progress = options.progress;
  started = true;
  const bool some = source.next();
  state = source.state();
  return some ? &source.generation() : nullptr;
}

TraceReader::TraceReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceReader::~TraceReader() = default;

Result<std::unique_ptr<TraceReader>> TraceReader::start(Result<std::unique_ptr<Input>> input,
                                                        std::optional<Result<TailState>> tail, TraceOptions options) {
  if (!input.ok()) return input.error();
  auto raw = RawReader::start(std::move(input.value()));
  if (!raw.ok()) return raw.error();
  std::optional<TailState> state;
  Failure fault;
  if (tail && tail->ok()) {
    state = std::move(tail->value());
    fault = state->fault;
  } else if (tail && tail->error().offset) {
    fault = tail->error();  // there is one, but it cannot be used
  }
  return std::unique_ptr<TraceReader>(new TraceReader(
      std::make_unique<Impl>(std::move(raw.value()), std::move(state), std::move(fault), std::move(options))));
}

Result<std::unique_ptr<TraceReader>> TraceReader::open(const std::string& file, TraceOptions options) {
  // The tail first: what it no longer has when we look at it is in the output by the time we read that.
  std::optional<Result<TailState>> tail;
  if (options.use_tail) tail = read_tail(file + ".tail");
  return start(Input::open(file), std::move(tail), std::move(options));
}

Result<std::unique_ptr<TraceReader>> TraceReader::from_bytes(std::span<const uint8_t> trace,
                                                             std::span<const uint8_t> tail, const std::string& name,
                                                             TraceOptions options) {
  std::optional<Result<TailState>> state;
  if (options.use_tail && !tail.empty()) state = read_tail_bytes(tail, name + ".tail");
  return start(Input::from_bytes(trace, name), std::move(state), std::move(options));
}

const Generation* TraceReader::next() { return impl_->next(); }
const Failure& TraceReader::fault() const { return impl_->state.fault; }
const TailState* TraceReader::tail() const { return impl_->source.tail() ? &*impl_->source.tail() : nullptr; }
const Failure& TraceReader::tail_fault() const { return impl_->source.tail_fault(); }
bool TraceReader::compressed() const { return impl_->source.compressed(); }

bool TraceReader::tail_covers() const {
  const SourceState& state = impl_->state;
  return tail() != nullptr && !tail_fault() && (!state.fault || state.cut) && state.last_complete >= tail()->closed;
}

uint64_t TraceReader::lost_bytes() const { return impl_->state.fault ? impl_->state.spoiled + impl_->state.unread : 0; }

}  // namespace traceaf::reader
