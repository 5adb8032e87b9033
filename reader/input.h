// The plain bytes of a trace, from a regular file or memory, decompressed on the way when they are zstd frames.
// Memory is bounded: one window of plain bytes and zstd's own window (at most 128 MiB, as the zstd program allows).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reader/status.h"

namespace traceaf::reader {

class Input {
 public:
  static constexpr size_t kMaxNeed = 128 * 1024;

  // Opens a regular file; anything else (missing, folder, FIFO, device, empty) is an Error. A file that grows meanwhile
  // is read up to the size it has now.
  static Result<std::unique_ptr<Input>> open(const std::string& file);
  // `bytes` must outlive the Input.
  static Result<std::unique_ptr<Input>> from_bytes(std::span<const uint8_t> bytes, const std::string& name);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // Makes `n` plain bytes (at most kMaxNeed) available at data(). Returns how many are; fewer only where the input
  // ends.
  size_t need(size_t n);
  [[nodiscard]] const uint8_t* data() const { return window_.data() + begin_; }
  void consume(size_t n);
  // Plain offset of data().
  [[nodiscard]] uint64_t offset() const { return offset_; }

  // Why the plain bytes end before their time (a cut or damaged zstd frame, an I/O error); empty when they do not.
  [[nodiscard]] const Failure& fault() const { return fault_; }
  // True when fault() says that the file ends inside a zstd frame, as after a kill.
  [[nodiscard]] bool cut() const { return cut_; }
  [[nodiscard]] bool compressed() const { return stream_ != nullptr; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] uint64_t file_size() const { return size_; }
  // Bytes of the file read so far.
  [[nodiscard]] uint64_t file_position() const { return position_; }
  // Decoded bytes not consumed, and bytes of the file not decoded.
  [[nodiscard]] uint64_t unread() const;

 private:
  Input() = default;
  static Result<std::unique_ptr<Input>> start(std::unique_ptr<Input> input);
  bool refill_raw();
  size_t produce(uint8_t* out, size_t room);
  size_t produce_plain(uint8_t* out, size_t room);
  size_t produce_zstd(uint8_t* out, size_t room);
  void fail(std::string message, uint64_t at, bool cut);

  std::string name_;
  int fd_ = -1;
  std::span<const uint8_t> memory_;
  uint64_t size_ = 0;      // of the file
  uint64_t position_ = 0;  // next byte of the file to read
  std::vector<uint8_t> raw_buffer_;
  std::span<const uint8_t> raw_;  // bytes of the file not yet decoded
  void* stream_ = nullptr;        // ZSTD_DCtx
  size_t hint_ = 0;               // bytes that zstd wants next; 0 between frames
  std::vector<uint8_t> window_;
  size_t begin_ = 0, end_ = 0;
  uint64_t offset_ = 0;
  bool ended_ = false;
  bool cut_ = false;
  Failure fault_;
};

// Bytes for an error message: printable ones as they are, others as \xNN.
std::string quote_bytes(std::span<const uint8_t> bytes);

}  // namespace traceaf::reader
