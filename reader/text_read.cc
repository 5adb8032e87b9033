// Text to bytes (see text.h).
#include <fmt/format.h>

#include <algorithm>

#include "emitter/wire/counters.h"
#include "emitter/wire/events.h"
#include "emitter/wire/varint.h"
#include "reader/rows.h"
#include "reader/text.h"
#include "reader/text_tokens.h"

namespace traceaf::reader {
namespace {

using wire::Ev;
using Bytes = std::vector<uint8_t>;

constexpr uint8_t number(Ev ev) { return static_cast<uint8_t>(ev); }

void append(Bytes& out, std::string_view text) { out.insert(out.end(), text.begin(), text.end()); }

const wire::EventSpec* event_by_name(std::string_view name) {
  for (const auto& spec : wire::kEvents) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

// Takes tokens[at] as the number called `name`. Returns what is wrong.
std::string take(const std::vector<Token>& tokens, size_t& at, std::string_view name, Number& out) {
  if (at == tokens.size()) return fmt::format("expected {}=NUMBER, found the end of the line", name);
  if (tokens[at].name != name || !tokens[at].number)
    return fmt::format("expected {}=NUMBER, found {}", name, tokens[at].name);
  out = *tokens[at++].number;
  return "";
}

class TextParser {
 public:
  // Takes a line. Returns what is wrong with it.
  std::string line(std::string_view text);
  std::string finish();
  [[nodiscard]] Bytes& bytes() { return out_; }

 private:
  // What the next indented line belongs to.
  enum class Below : uint8_t { kNothing, kString, kFrames, kExperimental };

  std::string top_line();
  std::string below_line();
  std::string begin_batch(bool experimental);
  std::string event_line(const wire::EventSpec& spec);
  std::string experimental_line();
  std::string row_line(const RowLayout& layout, Bytes& payload);
  std::string end_batch();

  std::vector<Token> tokens_;
  Bytes out_;
  bool header_ = false;
  // The open batch: everything of its header but the size, the size when given, and the body so far.
  bool open_ = false;
  Bytes head_, body_;
  std::optional<Number> size_;
  Below below_ = Below::kNothing;
  uint64_t frames_left_ = 0;
  std::optional<Number> string_length_;
  std::optional<uint64_t> kind_;  // of the experimental batch, once given
  RowDifferences differences_;    // of its rows so far
};

std::string TextParser::end_batch() {
  below_ = Below::kNothing;
  if (!open_) return "";
  open_ = false;
  out_.insert(out_.end(), head_.begin(), head_.end());
  Number size = size_.value_or(Number{body_.size(), 0});
  encode_number(out_, size);
  out_.insert(out_.end(), body_.begin(), body_.end());
  return "";
}

std::string TextParser::begin_batch(bool experimental) {
  end_batch();
  head_.assign(1, number(experimental ? Ev::kExperimentalBatch : Ev::kEventBatch));
  body_.clear();
  size_.reset();
  kind_.reset();
  size_t at = 1;
  Number field;
  if (experimental) {
    if (auto wrong = take(tokens_, at, "exp", field); !wrong.empty()) return wrong;
    if (field.value > 255) return fmt::format("expected an experiment id up to 255, found {}", field.value);
    head_.push_back(static_cast<uint8_t>(field.value));
  }
  for (const char* name : {"gen", "m", "time"}) {
    if (auto wrong = take(tokens_, at, name, field); !wrong.empty()) return wrong;
    encode_number(head_, field);
  }
  if (at != tokens_.size()) {
    if (auto wrong = take(tokens_, at, "size", field); !wrong.empty()) return wrong;
    size_ = field;
  }
  if (at != tokens_.size()) return fmt::format("expected the end of the line, found {}", tokens_[at].name);
  open_ = true;
  below_ = experimental ? Below::kExperimental : Below::kNothing;
  return "";
}

std::string TextParser::event_line(const wire::EventSpec& spec) {
  if (!open_) return fmt::format("expected a batch before {}", spec.name);
  below_ = Below::kNothing;
  body_.push_back(spec.number);
  size_t at = 1;
  std::string_view names = spec.arguments;
  string_length_.reset();
  for (size_t n = 0; !names.empty(); ++n) {
    const size_t space = names.find(' ');
    const std::string_view name = names.substr(0, space);
    names.remove_prefix(space == std::string_view::npos ? names.size() : space + 1);
    Number field;
    if (spec.number == number(Ev::kString) && name == "length") {
      if (at == tokens_.size()) break;
      if (auto wrong = take(tokens_, at, name, field); !wrong.empty()) return wrong;
      string_length_ = field;
      break;
    }
    if (auto wrong = take(tokens_, at, name, field); !wrong.empty()) return wrong;
    encode_number(body_, field);
    if (spec.number == number(Ev::kStack) && name == "nframes") frames_left_ = field.value;
  }
  if (at != tokens_.size()) return fmt::format("expected the end of the line, found {}", tokens_[at].name);
  if (spec.number == number(Ev::kString)) below_ = Below::kString;
  if (spec.number == number(Ev::kStack) && frames_left_ != 0) below_ = Below::kFrames;
  return "";
}

std::string TextParser::row_line(const RowLayout& layout, Bytes& payload) {
  size_t at = 1;
  for (size_t i = 0; i < layout.fields && at < tokens_.size() && tokens_[at].name != "extra"; ++i, ++at) {
    const Token& token = tokens_[at];
    const bool fits = layout.text[i] ? token.text.has_value() : token.number.has_value();
    if (token.name != layout.names[i] || !fits) {
      return fmt::format("expected {}={}, found {}", layout.names[i], layout.text[i] ? "\"...\"" : "NUMBER",
                         token.name);
    }
    if (layout.text[i]) {
      encode_number(payload, {token.text->size(), 0});
      append(payload, *token.text);
    } else if (layout.difference[i]) {
      encode_number(payload, {differences_.encode(layout, i, token.number->value), 0});
    } else {
      encode_number(payload, *token.number);
    }
  }
  for (; layout.pairs && at < tokens_.size() && tokens_[at].number; ++at) {
    uint64_t counter = 0;
    const auto* const known = std::find_if(std::begin(wire::kCounters), std::end(wire::kCounters),
                                           [&](const auto& spec) { return spec.name == tokens_[at].name; });
    if (known != std::end(wire::kCounters)) {
      counter = known->number;
    } else {
      std::vector<Token> numeric;
      const std::string text = fmt::format("n={}", tokens_[at].name);
      if (!split_line(text, numeric).empty()) return fmt::format("expected a counter, found {}", tokens_[at].name);
      counter = numeric[0].number->value;
    }
    encode_number(payload, {counter, 0});
    encode_number(payload, *tokens_[at].number);
  }
  if (at < tokens_.size() && tokens_[at].name == "extra" && tokens_[at].text) append(payload, *tokens_[at++].text);
  if (at != tokens_.size()) return fmt::format("expected the end of the row, found {}", tokens_[at].name);
  return "";
}

std::string TextParser::experimental_line() {
  const Token& first = tokens_[0];
  if (first.name == "data" && first.text && tokens_.size() == 1 && !kind_) {
    append(body_, *first.text);
    below_ = Below::kNothing;
    return "";
  }
  if (first.name == "kind" && first.number && first.number->value < 256 && tokens_.size() == 1 && !kind_) {
    kind_ = first.number->value;
    differences_ = {};
    body_.push_back(static_cast<uint8_t>(*kind_));
    return "";
  }
  if (!kind_) return "expected data=\"...\" or kind=NUMBER below an ExperimentalBatch";
  size_t at = 1;
  Number field;
  if (first.name == "Info" || first.name == "Type") {
    const bool info = first.name == "Info";
    const std::initializer_list<const char*> names = {"min_addr", "page_size", "min_align", "fixed_stack"};
    const std::initializer_list<const char*> type_names = {"id", "address", "size", "pointer_bytes"};
    for (const char* name : info ? names : type_names) {
      if (auto wrong = take(tokens_, at, name, field); !wrong.empty()) return wrong;
      encode_number(body_, field);
    }
    if (!info) {
      if (at == tokens_.size() || tokens_[at].name != "name" || !tokens_[at].text) return "expected name=\"...\"";
      encode_number(body_, {tokens_[at].text->size(), 0});
      append(body_, *tokens_[at++].text);
    }
    return at == tokens_.size() ? "" : fmt::format("expected the end of the line, found {}", tokens_[at].name);
  }
  uint64_t tag = 0;
  Bytes payload;
  if (first.name == "Row") {
    if (auto wrong = take(tokens_, at, "tag", field); !wrong.empty()) return wrong;
    tag = field.value;
    if (at + 1 != tokens_.size() || tokens_[at].name != "data" || !tokens_[at].text)
      return "expected data=\"...\" behind the tag";
    append(payload, *tokens_[at].text);
  } else {
    const auto layout = std::find_if(kRowLayouts.begin(), kRowLayouts.end(),
                                     [&](const RowLayout& row) { return row.name == first.name; });
    if (layout == kRowLayouts.end()) return fmt::format("expected a row, Type or Info, found {}", first.name);
    tag = layout->tag;
    if (auto wrong = row_line(*layout, payload); !wrong.empty()) return wrong;
  }
  encode_number(body_, {tag, 0});
  encode_number(body_, {payload.size(), 0});
  body_.insert(body_.end(), payload.begin(), payload.end());
  return "";
}

std::string TextParser::below_line() {
  switch (below_) {
    case Below::kNothing:
      return "expected no indented line here";
    case Below::kString: {
      if (tokens_.size() != 1 || tokens_[0].name != "data" || !tokens_[0].text)
        return "expected data=\"...\" below a String";
      encode_number(body_, string_length_.value_or(Number{tokens_[0].text->size(), 0}));
      append(body_, *tokens_[0].text);
      below_ = Below::kNothing;
      return "";
    }
    case Below::kFrames: {
      size_t at = 0;
      for (const char* name : {"pc", "func", "file", "line"}) {
        Number field;
        if (auto wrong = take(tokens_, at, name, field); !wrong.empty()) return wrong;
        encode_number(body_, field);
      }
      if (--frames_left_ == 0) below_ = Below::kNothing;
      return at == tokens_.size() ? "" : "expected pc, func, file and line of a frame, found more";
    }
    case Below::kExperimental:
      return experimental_line();
  }
  return "";
}

std::string TextParser::top_line() {
  const Token& first = tokens_[0];
  if (!header_) {
    if (first.name != "Trace" || tokens_.size() != 2 || tokens_[1].name != "Go1.26")
      return "expected \"Trace Go1.26\" first";
    header_ = true;
    out_.assign(wire::kHeader, wire::kHeader + sizeof wire::kHeader);
    return "";
  }
  if (first.number || first.text) return fmt::format("expected the name of an event, found {}=", first.name);
  if (below_ == Below::kString) return "expected data=\"...\" below a String";
  if (first.name == "Bytes") {
    if (tokens_.size() != 2 || tokens_[1].name != "data" || !tokens_[1].text) return "expected Bytes data=\"...\"";
    if (open_ && below_ == Below::kExperimental && !kind_ && body_.empty())
      return "expected data or kind below an ExperimentalBatch";
    if (open_ && head_[0] == number(Ev::kExperimentalBatch)) end_batch();
    append(open_ ? body_ : out_, *tokens_[1].text);
    return "";
  }
  const auto* const spec = event_by_name(first.name);
  if (spec == nullptr) return fmt::format("expected the name of an event, found {}", first.name);
  switch (static_cast<Ev>(spec->number)) {
    case Ev::kEventBatch:
      return begin_batch(false);
    case Ev::kExperimentalBatch:
      return begin_batch(true);
    case Ev::kEndOfGeneration:
      end_batch();
      out_.push_back(spec->number);
      return tokens_.size() == 1 ? "" : "expected nothing behind EndOfGeneration";
    default:
      return event_line(*spec);
  }
}

std::string TextParser::line(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t\r");
  if (start == std::string_view::npos || text[start] == '#') return "";
  if (auto wrong = split_line(text, tokens_); !wrong.empty()) return wrong;
  return text[0] == '\t' || text[0] == ' ' ? below_line() : top_line();
}

std::string TextParser::finish() {
  if (!header_) return "expected \"Trace Go1.26\" first, found the end of the text";
  if (below_ == Below::kString) return "expected data=\"...\" below a String, found the end of the text";
  return end_batch();
}

}  // namespace

Result<std::vector<uint8_t>> text_to_bytes(std::string_view text, const std::string& name) {
  TextParser parser;
  const auto error = [&](std::string wrong, uint64_t line) {
    Error out;
    out.file = fmt::format("{}:{}", name, line);
    out.message = std::move(wrong);
    return out;
  };
  uint64_t number_of_line = 0;
  while (!text.empty()) {
    ++number_of_line;
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    std::string wrong = parser.line(line);
    if (!wrong.empty()) return error(std::move(wrong), number_of_line);
  }
  std::string wrong = parser.finish();
  if (!wrong.empty()) return error(std::move(wrong), number_of_line);
  return std::move(parser.bytes());
}

}  // namespace traceaf::reader
