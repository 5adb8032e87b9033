// Bytes to text (see text.h).
#include <fmt/format.h>

#include <algorithm>

#include "emitter/wire/counters.h"
#include "emitter/wire/varint.h"
#include "reader/input.h"
#include "reader/raw_reader.h"
#include "reader/rows.h"
#include "reader/text.h"
#include "reader/text_tokens.h"

namespace traceaf::reader {
namespace {

using wire::Ev;
using Body = std::span<const uint8_t>;

constexpr size_t kBytesPerLine = 64;
constexpr size_t kFlushAt = 64 * 1024;
constexpr std::string_view kFrameNames[] = {"pc", "func", "file", "line"};

constexpr uint8_t number(Ev ev) { return static_cast<uint8_t>(ev); }

// Appends "name=value" of the integer at `at`. Returns the byte behind it, nullptr when there is none.
const uint8_t* append_field(std::string& out, std::string_view name, const uint8_t* at, const uint8_t* end,
                            uint64_t* value) {
  const uint8_t* const behind = wire::get_varint(at, end, value);
  if (behind == nullptr) return nullptr;
  out += ' ';
  out += name;
  out += '=';
  append_number(out, *value, static_cast<size_t>(behind - at));
  return behind;
}

void append_bytes_lines(std::string& out, Body bytes) {
  for (size_t at = 0; at < bytes.size(); at += kBytesPerLine) {
    out += "Bytes data=";
    append_quoted(out, bytes.subspan(at, std::min(kBytesPerLine, bytes.size() - at)));
    out += '\n';
  }
}

// Next name of a space separated list.
std::string_view take_name(std::string_view& names) {
  const size_t space = names.find(' ');
  const std::string_view name = names.substr(0, space);
  names.remove_prefix(space == std::string_view::npos ? names.size() : space + 1);
  return name;
}

// One event or table entry of an ordinary batch. Returns the byte behind it, or nullptr (and appends nothing of use).
const uint8_t* append_event(std::string& out, const uint8_t* at, const uint8_t* end) {
  const auto* const spec = wire::find_event(*at);
  if (spec == nullptr || spec->number == number(Ev::kEventBatch) || spec->number == number(Ev::kExperimentalBatch) ||
      spec->number == number(Ev::kEndOfGeneration)) {
    return nullptr;
  }
  ++at;
  out += spec->name;
  uint64_t values[5] = {};
  size_t n = 0;
  std::string_view names = spec->arguments;
  const bool string = spec->number == number(Ev::kString);
  const bool stack = spec->number == number(Ev::kStack);
  while (!names.empty()) {
    const std::string_view name = take_name(names);
    const size_t before = out.size();
    const uint8_t* const start = at;
    at = append_field(out, name, at, end, &values[n]);
    if (at == nullptr) return nullptr;
    // The length of a string follows from its data.
    if (string && n == 1 && static_cast<size_t>(at - start) == wire::varint_size(values[1])) out.resize(before);
    ++n;
  }
  out += '\n';
  if (string) {
    if (values[1] > static_cast<size_t>(end - at)) return nullptr;
    out += "\tdata=";
    append_quoted(out, {at, static_cast<size_t>(values[1])});
    out += '\n';
    at += values[1];
  } else if (stack) {
    for (uint64_t frame = 0; frame < values[1]; ++frame) {
      const size_t line = out.size();
      for (const auto& name : kFrameNames) {
        uint64_t value = 0;
        at = append_field(out, name, at, end, &value);
        if (at == nullptr) return nullptr;
      }
      out[line] = '\t';
      out += '\n';
    }
  }
  return at;
}

// Appends the events of an ordinary batch; what cannot be decoded as Bytes lines. Returns what is wrong, and where.
std::optional<std::pair<size_t, std::string>> append_events(std::string& out, Body body) {
  const uint8_t* at = body.data();
  const uint8_t* const end = at + body.size();
  while (at != end) {
    const size_t before = out.size();
    const uint8_t* const behind = append_event(out, at, end);
    if (behind == nullptr) {
      out.resize(before);
      append_bytes_lines(out, {at, end});
      return std::pair(static_cast<size_t>(at - body.data()),
                       fmt::format("expected an event, found undecodable bytes (type {})", *at));
    }
    at = behind;
  }
  return {};
}

// ---- experimental batches ------------------------------------------------------------------------------------------

void encode(std::vector<uint8_t>& out, uint64_t value) { encode_number(out, {value, 0}); }
void encode(std::vector<uint8_t>& out, std::string_view text) {
  encode(out, text.size());
  out.insert(out.end(), text.begin(), text.end());
}
Body bytes_of(std::string_view text) { return {reinterpret_cast<const uint8_t*>(text.data()), text.size()}; }

// A row as text, and as the bytes that this text stands for.
void append_row(std::string& out, std::vector<uint8_t>& again, RowDifferences& differences, const RowView& row) {
  std::vector<uint8_t> payload;
  if (row.layout == nullptr) {
    out += fmt::format("\tRow tag={} data=", row.tag);
    append_quoted(out, row.payload);
    payload.assign(row.payload.begin(), row.payload.end());
  } else {
    out += fmt::format("\t{}", row.layout->name);
    for (size_t i = 0; i < row.fields; ++i) {
      if (row.layout->text[i]) {
        out += fmt::format(" {}=", row.layout->names[i]);
        append_quoted(out, bytes_of(row.text[i]));
        encode(payload, row.text[i]);
      } else {
        out += fmt::format(" {}={}", row.layout->names[i], row.value[i]);
        encode(payload, differences.encode(*row.layout, i, row.value[i]));
      }
    }
    if (row.layout->pairs) {
      for_each_counter(row, [&](uint64_t counter, uint64_t value) {
        out += counter < std::size(wire::kCounters) ? fmt::format(" {}={}", wire::kCounters[counter].name, value)
                                                    : fmt::format(" {}={}", counter, value);
        encode(payload, counter);
        encode(payload, value);
      });
    }
    if (!row.extra.empty()) {
      out += " extra=";
      append_quoted(out, row.extra);
      payload.insert(payload.end(), row.extra.begin(), row.extra.end());
    }
  }
  out += '\n';
  encode(again, row.tag);
  encode(again, payload.size());
  again.insert(again.end(), payload.begin(), payload.end());
}

// Types: one line each. False when the bytes are no whole table.
bool append_types(std::string& out, std::vector<uint8_t>& again, Body bytes) {
  const uint8_t* at = bytes.data();
  const uint8_t* const end = at + bytes.size();
  while (at != end) {
    uint64_t v[5] = {};
    for (auto& value : v) {
      at = wire::get_varint(at, end, &value);
      if (at == nullptr) return false;
      encode(again, value);
    }
    if (v[4] > static_cast<size_t>(end - at)) return false;
    out += fmt::format("\tType id={} address={} size={} pointer_bytes={} name=", v[0], v[1], v[2], v[3]);
    append_quoted(out, {at, static_cast<size_t>(v[4])});
    out += '\n';
    again.insert(again.end(), at, at + v[4]);
    at += v[4];
  }
  return true;
}

bool append_info(std::string& out, std::vector<uint8_t>& again, Body bytes) {
  const uint8_t* at = bytes.data();
  const uint8_t* const end = at + bytes.size();
  out += "\tInfo";
  for (const char* name : {"min_addr", "page_size", "min_align", "fixed_stack"}) {
    uint64_t value = 0;
    at = wire::get_varint(at, end, &value);
    if (at == nullptr) return false;
    out += fmt::format(" {}={}", name, value);
    encode(again, value);
  }
  out += '\n';
  return at == end;
}

// Decoded where that says everything (it is encoded again and compared), else as data.
void append_experimental(std::string& out, Body body) {
  const size_t before = out.size();
  if (!body.empty()) {
    const Body bytes = body.subspan(1);
    std::vector<uint8_t> again;
    out += fmt::format("\tkind={}\n", body[0]);
    bool whole = false;
    if (body[0] == wire::kBatchRows) {
      RowDifferences differences;
      whole = !for_each_row(bytes, [&](const RowView& row) { append_row(out, again, differences, row); });
    } else if (body[0] == wire::kBatchTypes) {
      whole = append_types(out, again, bytes);
    } else if (body[0] == wire::kBatchInfo) {
      whole = append_info(out, again, bytes);
    }
    if (whole && std::equal(again.begin(), again.end(), bytes.begin(), bytes.end())) return;
    out.resize(before);
  }
  out += "\tdata=";
  append_quoted(out, body);
  out += '\n';
}

// The line of a batch. Widths come from the bytes of its header.
void append_batch_line(std::string& out, const RawReader::Frame& frame) {
  const uint8_t* at = frame.header.data() + 1;
  const uint8_t* const end = frame.header.data() + frame.header_bytes;
  uint64_t value = 0;
  if (frame.experiment == 0) {
    out += "EventBatch";
  } else {
    out += fmt::format("ExperimentalBatch exp={}", *at++);
  }
  for (const char* name : {"gen", "m", "time"}) at = append_field(out, name, at, end, &value);
  // The size of an experimental batch follows from its data.
  if (frame.experiment == 0 || static_cast<size_t>(end - at) != wire::varint_size(frame.size)) {
    append_field(out, "size", at, end, &value);
  }
  out += '\n';
}

Failure write_text(std::unique_ptr<Input> input, const TextSink& sink) {
  const std::string name = input->name();
  auto started = RawReader::start(std::move(input));
  if (!started.ok()) return started.error();
  RawReader& raw = *started.value();
  std::string out = "Trace Go1.26\n";
  std::vector<uint8_t> body;
  Failure first;
  uint64_t batches = 0;
  const auto flush = [&](size_t above) {
    if (out.size() <= above) return true;
    const bool more = sink(out);
    out.clear();
    return more;
  };
  for (;;) {
    const RawReader::Item item = raw.next();
    if (item == RawReader::Item::kEnd) break;
    if (item == RawReader::Item::kEndOfGeneration) {
      out += "EndOfGeneration\n";
      continue;
    }
    const RawReader::Frame& frame = raw.frame();
    if (item == RawReader::Item::kBatch) {
      ++batches;
      body.clear();
      if (raw.take_body(body)) {
        append_batch_line(out, frame);
        if (frame.experiment != 0) {
          append_experimental(out, body);
        } else if (auto wrong = append_events(out, body); wrong && !first) {
          Error error;
          error.file = name;
          error.offset = frame.offset + frame.header_bytes + wrong->first;
          error.generation = frame.gen;
          error.message = wrong->second;
          first = std::move(error);
        }
        if (!flush(kFlushAt)) return {};
        continue;
      }
      append_bytes_lines(out, {frame.header.data(), frame.header_bytes});
      append_bytes_lines(out, body);
    }
    // A fault in the framing: the rest as it is.
    if (!first) first = raw.fault();
    while (const size_t n = raw.input().need(Input::kMaxNeed)) {
      const size_t piece = std::min(n, Input::kMaxNeed);
      append_bytes_lines(out, {raw.input().data(), piece});
      raw.input().consume(piece);
      if (!flush(0)) return {};
    }
    break;
  }
  flush(0);
  return first;
}

}  // namespace

Failure file_to_text(const std::string& file, const TextSink& sink) {
  auto input = Input::open(file);
  if (!input.ok()) return input.error();
  return write_text(std::move(input.value()), sink);
}

Failure bytes_to_text(std::span<const uint8_t> trace, const std::string& name, const TextSink& sink) {
  auto input = Input::from_bytes(trace, name);
  if (!input.ok()) return input.error();
  return write_text(std::move(input.value()), sink);
}

}  // namespace traceaf::reader
