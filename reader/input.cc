// Plain bytes from a file or memory (see input.h).
#include "reader/input.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>

namespace traceaf::reader {
namespace {

constexpr size_t kWindowBytes = 2 * Input::kMaxNeed;
constexpr size_t kRawBytes = 256 * 1024;
constexpr uint8_t kZstdMagic[] = {0x28, 0xb5, 0x2f, 0xfd};
// A skippable frame may come first (zstd's seekable format): 0x184D2A5? little endian.
constexpr uint8_t kSkippableMagic[] = {0x2a, 0x4d, 0x18};
constexpr int kWindowLogMax = 27;
constexpr size_t kFrameHeaderMax = 18;

bool is_zstd(std::span<const uint8_t> head) {
  if (head.size() < 4) return false;
  if (memcmp(head.data(), kZstdMagic, 4) == 0) return true;
  return (head[0] & 0xf0) == 0x50 && memcmp(head.data() + 1, kSkippableMagic, 3) == 0;
}

const char* file_kind(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISCHR(mode)) return "a character device";
  if (S_ISBLK(mode)) return "a block device";
  if (S_ISSOCK(mode)) return "a socket";
  return "something else";
}

Error no_trace(const std::string& name, std::string message) {
  Error error;
  error.file = name;
  error.message = std::move(message);
  return error;
}

}  // namespace

std::string quote_bytes(std::span<const uint8_t> bytes) {
  std::string out = "\"";
  for (const uint8_t b : bytes) {
    if (b == '"' || b == '\\') {
      out += '\\';
      out += static_cast<char>(b);
    } else if (b >= 0x20 && b < 0x7f) {
      out += static_cast<char>(b);
    } else {
      out += fmt::format("\\x{:02x}", b);
    }
  }
  return out + '"';
}

Result<std::unique_ptr<Input>> Input::open(const std::string& file) {
  // The kind is looked at before opening: opening a FIFO waits and opening a device may do things.
  struct stat st {};
  if (stat(file.c_str(), &st) != 0) {
    return no_trace(file, fmt::format("expected a trace file, found none ({})", strerror(errno)));
  }
  if (!S_ISREG(st.st_mode)) {
    return no_trace(file, fmt::format("expected a regular file, found {}", file_kind(st.st_mode)));
  }
  std::unique_ptr<Input> input(new Input);
  input->name_ = file;
  input->fd_ = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (input->fd_ < 0 || fstat(input->fd_, &st) != 0) {
    return no_trace(file,
                    fmt::format("expected a readable file, found that it cannot be opened ({})", strerror(errno)));
  }
  if (!S_ISREG(st.st_mode)) {
    return no_trace(file, fmt::format("expected a regular file, found {}", file_kind(st.st_mode)));
  }
  input->size_ = static_cast<uint64_t>(st.st_size);
  return start(std::move(input));
}

Result<std::unique_ptr<Input>> Input::from_bytes(std::span<const uint8_t> bytes, const std::string& name) {
  std::unique_ptr<Input> input(new Input);
  input->name_ = name;
  input->memory_ = bytes;
  input->size_ = bytes.size();
  return start(std::move(input));
}

Result<std::unique_ptr<Input>> Input::start(std::unique_ptr<Input> input) {
  if (input->size_ == 0) return no_trace(input->name_, "expected a trace, found an empty file");
  input->window_.resize(kWindowBytes);
  input->refill_raw();
  if (input->fault_) return *input->fault_;
  if (is_zstd(input->raw_)) {
    ZSTD_DCtx* stream = ZSTD_createDCtx();
    if (stream == nullptr) return no_trace(input->name_, "no memory for the zstd decoder");
    ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, kWindowLogMax);
    input->stream_ = stream;
  }
  return input;
}

Input::~Input() {
  if (stream_ != nullptr) ZSTD_freeDCtx(static_cast<ZSTD_DCtx*>(stream_));
  if (fd_ >= 0) close(fd_);
}

void Input::fail(std::string message, uint64_t at, bool cut) {
  Error error;
  error.message = std::move(message);
  error.file = name_;
  error.offset = at;
  error.compressed = stream_ != nullptr;
  fault_ = std::move(error);
  cut_ = cut;
  ended_ = true;
}

uint64_t Input::unread() const { return (end_ - begin_) + raw_.size() + (size_ - position_); }

// Puts the next bytes of the file into raw_, which must be empty. False at the end of the file or on a fault.
bool Input::refill_raw() {
  const uint64_t left = size_ - position_;
  if (left == 0) return false;
  if (fd_ < 0) {
    raw_ = memory_.subspan(position_);
    position_ = size_;
    return true;
  }
  raw_buffer_.resize(kRawBytes);
  const size_t want = static_cast<size_t>(std::min<uint64_t>(left, kRawBytes));
  ssize_t got = 0;
  do {
    got = pread(fd_, raw_buffer_.data(), want, static_cast<off_t>(position_));
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    fail(fmt::format("expected {} more bytes, found that reading failed ({})", left, strerror(errno)), position_,
         false);
    return false;
  }
  if (got == 0) {  // the file was shortened meanwhile
    size_ = position_;
    return false;
  }
  raw_ = {raw_buffer_.data(), static_cast<size_t>(got)};
  position_ += static_cast<uint64_t>(got);
  return true;
}

size_t Input::produce_plain(uint8_t* out, size_t room) {
  if (raw_.empty() && !refill_raw()) {
    ended_ = true;
    return 0;
  }
  const size_t n = std::min(room, raw_.size());
  memcpy(out, raw_.data(), n);
  raw_ = raw_.subspan(n);
  return n;
}

// zstd is fed just what it asks for (one block), so that a damaged block costs no bytes of the blocks before it.
size_t Input::produce_zstd(uint8_t* out, size_t room) {
  for (;;) {
    bool at_end = false;
    if (raw_.empty()) at_end = !refill_raw();
    if (ended_) return 0;
    if (at_end && hint_ == 0) {
      ended_ = true;
      return 0;
    }
    const size_t give = hint_ == 0 ? raw_.size() : std::min(hint_, raw_.size());
    ZSTD_inBuffer in{raw_.data(), hint_ == 0 ? std::min<size_t>(give, kFrameHeaderMax) : give, 0};
    ZSTD_outBuffer produced{out, room, 0};
    const uint64_t at = position_ - raw_.size();
    const size_t hint = ZSTD_decompressStream(static_cast<ZSTD_DCtx*>(stream_), &produced, &in);
    if (ZSTD_isError(hint) != 0) {
      fail(fmt::format("expected a sound zstd frame, found damage ({})", ZSTD_getErrorName(hint)), at, false);
      return 0;
    }
    raw_ = raw_.subspan(in.pos);
    hint_ = hint;
    if (produced.pos != 0) return produced.pos;
    if (at_end && in.pos == 0) {
      fail("expected the rest of a zstd frame, found the end of the file", size_, true);
      return 0;
    }
  }
}

size_t Input::produce(uint8_t* out, size_t room) {
  return stream_ == nullptr ? produce_plain(out, room) : produce_zstd(out, room);
}

size_t Input::need(size_t n) {
  while (end_ - begin_ < n && !ended_) {
    if (begin_ != 0 && window_.size() - begin_ < n) {
      memmove(window_.data(), window_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    end_ += produce(window_.data() + end_, window_.size() - end_);
  }
  return end_ - begin_;
}

void Input::consume(size_t n) {
  begin_ += n;
  offset_ += n;
  if (begin_ == end_) begin_ = end_ = 0;
}

}  // namespace traceaf::reader
