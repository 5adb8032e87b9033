// The framing of a trace: header, batches, EndOfGeneration bytes, each with its offset. Bodies stay bytes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "emitter/wire/events.h"
#include "reader/input.h"
#include "reader/status.h"

namespace traceaf::reader {

class RawReader {
 public:
  enum class Item : uint8_t {
    kBatch,  // fields of frame() are valid; the body waits for take_body()
    kEndOfGeneration,
    kEnd,   // the input ends between two items
    kFault  // see fault()
  };

  struct Frame {
    uint64_t offset = 0;     // of the item's first byte
    uint8_t experiment = 0;  // 0: EventBatch
    uint64_t gen = 0, m = 0, time = 0, size = 0;
    std::array<uint8_t, 2 + 4 * 10> header{};  // the bytes in front of the body
    size_t header_bytes = 0;
  };

  // Checks the 16 bytes that open a trace.
  static Result<std::unique_ptr<RawReader>> start(std::unique_ptr<Input> input);

  Item next();
  [[nodiscard]] const Frame& frame() const { return frame_; }
  // Appends the body of the batch to `out`; false (and fault()) when the input ends inside it: then what there is was
  // appended. Must be called once for each kBatch.
  bool take_body(std::vector<uint8_t>& out);

  [[nodiscard]] const Failure& fault() const { return fault_; }
  // True when the fault is that the input ends inside an item.
  [[nodiscard]] bool cut() const { return cut_; }
  [[nodiscard]] Input& input() { return *input_; }
  [[nodiscard]] const Input& input() const { return *input_; }
  // Bytes of the item at which the fault lies that were consumed already.
  [[nodiscard]] uint64_t spoiled() const { return spoiled_; }

 private:
  explicit RawReader(std::unique_ptr<Input> input) : input_(std::move(input)) {}
  Item fail(std::string message, uint64_t offset);
  Item fail_at_end(std::string message, uint64_t offset);
  void place(Error& error) const;

  std::unique_ptr<Input> input_;
  Frame frame_;
  Failure fault_;
  bool cut_ = false;
  uint64_t spoiled_ = 0;
  uint64_t generation_ = 0, batch_ = 0;  // of the last item, for messages
};

}  // namespace traceaf::reader
