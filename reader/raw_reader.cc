// Framing of a trace (see raw_reader.h).
#include "reader/raw_reader.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>

#include "emitter/wire/varint.h"

namespace traceaf::reader {
namespace {

constexpr uint8_t kBatchByte = static_cast<uint8_t>(wire::Ev::kEventBatch);
constexpr uint8_t kExperimentalByte = static_cast<uint8_t>(wire::Ev::kExperimentalBatch);
constexpr uint8_t kEndByte = static_cast<uint8_t>(wire::Ev::kEndOfGeneration);

struct KnownFile {
  std::string_view magic;
  const char* name;
};
constexpr KnownFile kKnownFiles[] = {{"\x89PNG", "a PNG image"},
                                     {"\x1f\x8b", "a gzip file"},
                                     {"\x7f"
                                      "ELF",
                                      "an ELF file"},
                                     {"\xfd"
                                      "7zXZ",
                                      "an xz file"},
                                     {"BZh", "a bzip2 file"},
                                     {"%PDF", "a PDF document"},
                                     {"taftail1", "a trace's tail (read the trace beside it)"}};

std::string describe_head(std::span<const uint8_t> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  for (const auto& known : kKnownFiles) {
    if (text.starts_with(known.magic)) return known.name;
  }
  // "go 1.NN trace": another version of the format.
  if (head.size() >= 13 && text.starts_with("go 1.") && text.substr(7, 6) == " trace") {
    const std::string_view version = text.substr(3, 4);
    return fmt::format("version {} of the format, which is {} than this program knows", version,
                       version > "1.26" ? "newer" : "older");
  }
  return fmt::format("{}", quote_bytes(head));
}

}  // namespace

Result<std::unique_ptr<RawReader>> RawReader::start(std::unique_ptr<Input> input) {
  const size_t have = std::min(input->need(sizeof wire::kHeader), sizeof wire::kHeader);
  const std::span<const uint8_t> head(input->data(), have);
  if (have == sizeof wire::kHeader && memcmp(head.data(), wire::kHeader, have) == 0) {
    input->consume(have);
    return std::unique_ptr<RawReader>(new RawReader(std::move(input)));
  }
  if (have < sizeof wire::kHeader && input->fault()) return *input->fault();
  Error error;
  error.file = input->name();
  error.offset = 0;
  const bool partial = have < sizeof wire::kHeader && memcmp(head.data(), wire::kHeader, have) == 0;
  error.message = fmt::format("expected the trace header {}, found {}",
                              quote_bytes({reinterpret_cast<const uint8_t*>(wire::kHeader), sizeof wire::kHeader}),
                              partial ? fmt::format("only its first {} bytes", have) : describe_head(head));
  return error;
}

void RawReader::place(Error& error) const {
  error.file = input_->name();
  if (generation_ != 0) error.generation = generation_;
  if (generation_ != 0 && batch_ != 0) error.batch = batch_;
}

RawReader::Item RawReader::fail(std::string message, uint64_t offset) {
  Error error;
  error.message = std::move(message);
  error.offset = offset;
  place(error);
  fault_ = std::move(error);
  return Item::kFault;
}

// The input ends inside an item. When zstd is the reason, its message and place say more than ours.
RawReader::Item RawReader::fail_at_end(std::string message, uint64_t offset) {
  if (!input_->fault()) {
    cut_ = true;
    return fail(std::move(message), offset);
  }
  cut_ = input_->cut();
  Error error = *input_->fault();
  error.message += fmt::format(" (after plain byte {})", input_->offset());
  place(error);
  fault_ = std::move(error);
  return Item::kFault;
}

RawReader::Item RawReader::next() {
  if (fault_) return Item::kFault;
  const size_t have = input_->need(frame_.header.size());
  const uint64_t offset = input_->offset();
  if (have == 0) {
    if (!input_->fault()) return Item::kEnd;
    return fail_at_end("", offset);
  }
  const uint8_t* const head = input_->data();
  const uint8_t* const end = head + have;
  frame_.offset = offset;
  if (*head == kEndByte) {
    input_->consume(1);
    return Item::kEndOfGeneration;
  }
  ++batch_;
  if (*head != kBatchByte && *head != kExperimentalByte) {
    return fail(
        fmt::format("expected a batch ({}), an experimental batch ({}) or the end of the generation ({}), found "
                    "event {}",
                    kBatchByte, kExperimentalByte, kEndByte, *head),
        offset);
  }
  const uint8_t* at = head + 1;
  frame_.experiment = 0;
  if (*head == kExperimentalByte) {
    if (at == end) return fail_at_end("expected a whole batch header, found the end of the input", offset);
    frame_.experiment = *at++;
    if (frame_.experiment == 0) return fail("expected an experiment id from 1, found 0", offset);
  }
  for (uint64_t* field : {&frame_.gen, &frame_.m, &frame_.time, &frame_.size}) {
    const uint8_t* const behind = wire::get_varint(at, end, field);
    if (behind == nullptr) {
      if (static_cast<size_t>(end - at) >= wire::kMaxVarint) {
        return fail("expected an integer of at most 64 bits in the batch header, found a longer one", offset);
      }
      return fail_at_end("expected a whole batch header, found the end of the input", offset);
    }
    at = behind;
  }
  if (frame_.gen != generation_) batch_ = 1;
  generation_ = frame_.gen;
  if (frame_.gen == 0) return fail("expected a generation number from 1, found 0", offset);
  if (frame_.size > wire::kMaxBatchBody) {
    return fail(fmt::format("expected a batch of at most {} bytes, found {}", wire::kMaxBatchBody, frame_.size),
                offset);
  }
  frame_.header_bytes = static_cast<size_t>(at - head);
  memcpy(frame_.header.data(), head, frame_.header_bytes);
  input_->consume(frame_.header_bytes);
  return Item::kBatch;
}

bool RawReader::take_body(std::vector<uint8_t>& out) {
  const size_t size = static_cast<size_t>(frame_.size);
  const size_t have = std::min(input_->need(size), size);
  out.insert(out.end(), input_->data(), input_->data() + have);
  input_->consume(have);
  if (have == size) return true;
  spoiled_ = frame_.header_bytes + have;
  fail_at_end(fmt::format("expected {} bytes of a batch, found {} up to the end of the input", size, have),
              frame_.offset);
  return false;
}

}  // namespace traceaf::reader
