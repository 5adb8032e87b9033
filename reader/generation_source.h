// Generations one after the other from the output and its tail, on the calling thread: what TraceReader hands out.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "reader/raw_reader.h"
#include "reader/tail.h"
#include "reader/trace.h"

namespace traceaf::reader {

// What is known about the end of a trace after some generation.
struct SourceState {
  Failure fault;
  bool cut = false;            // the fault is that the output ends too early
  uint64_t last_complete = 0;  // number of the last generation ended by EndOfGeneration
  uint64_t spoiled = 0;        // bytes of the item with the fault that were read already
  uint64_t unread = 0;         // bytes behind it
};

class GenerationSource {
 public:
  GenerationSource(std::unique_ptr<RawReader> raw, std::optional<TailState> tail, Failure tail_fault)
      : tail_(std::move(tail)), tail_fault_(std::move(tail_fault)), raw_(std::move(raw)) {}

  // Reads the next generation; false when there is none.
  bool next();
  // The generation read. The caller may swap it for another one, whose memory is then used again.
  [[nodiscard]] Generation& generation() { return gen_; }
  // After next().
  [[nodiscard]] SourceState state() const;

  // Called now and then from next() with bytes of the file read and its size.
  std::function<void(uint64_t, uint64_t)> progress;
  // Set by another thread: a next() under way returns soon, and false.
  std::atomic<bool> stop = false;

  [[nodiscard]] uint64_t file_position() const { return raw_->input().file_position(); }
  // These do not change.
  [[nodiscard]] const std::optional<TailState>& tail() const { return tail_; }
  [[nodiscard]] const Failure& tail_fault() const { return tail_fault_; }
  [[nodiscard]] bool compressed() const { return raw_->input().compressed(); }
  [[nodiscard]] uint64_t file_size() const { return file_size_; }

 private:
  enum class Stage : uint8_t { kOutput, kTail, kDone };

  void start_generation();
  bool read_output_generation();
  bool take_batch();
  void add_tail_slots(size_t first);
  bool finish_generation();
  void report_progress(bool force);
  void fail(std::string message, uint64_t offset, bool is_cut);

  const std::optional<TailState> tail_;
  const Failure tail_fault_;
  std::unique_ptr<RawReader> raw_;
  const uint64_t file_size_ = raw_->input().file_size();
  Stage stage_ = Stage::kOutput;
  Generation gen_;
  SourceState state_;
  uint64_t last_number_ = 0;  // of the last generation given out
  std::optional<Sync> previous_sync_;
  std::optional<HeapInfo> previous_info_;
  uint64_t batches_read_ = 0;
};

}  // namespace traceaf::reader
