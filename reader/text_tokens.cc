// Tokens of the text form (see text_tokens.h).
#include "reader/text_tokens.h"

#include <fmt/format.h>

#include <charconv>

#include "emitter/wire/varint.h"

namespace traceaf::reader {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Reads a quoted string at the front of `line` and takes it off.
std::string read_quoted(std::string_view& line, std::string& out) {
  line.remove_prefix(1);
  while (!line.empty() && line.front() != '"') {
    char c = line.front();
    line.remove_prefix(1);
    if (c == '\\') {
      if (line.empty()) break;
      const char escape = line.front();
      line.remove_prefix(1);
      switch (escape) {
        case 'n':
          c = '\n';
          break;
        case 't':
          c = '\t';
          break;
        case 'r':
          c = '\r';
          break;
        case 'a':
          c = '\a';
          break;
        case 'b':
          c = '\b';
          break;
        case 'f':
          c = '\f';
          break;
        case 'v':
          c = '\v';
          break;
        case '\\':
        case '"':
          c = escape;
          break;
        case 'x': {
          if (line.size() < 2 || hex_digit(line[0]) < 0 || hex_digit(line[1]) < 0)
            return "expected two hex digits behind \\x";
          c = static_cast<char>(hex_digit(line[0]) * 16 + hex_digit(line[1]));
          line.remove_prefix(2);
          break;
        }
        default:
          return fmt::format("expected an escape as in Go's strings, found \\{}", escape);
      }
    }
    out += c;
  }
  if (line.empty()) return "expected a closing quote, found the end of the line";
  line.remove_prefix(1);
  return "";
}

std::string read_number(std::string_view text, Number& out) {
  const size_t slash = text.find('/');
  std::string_view value = text.substr(0, slash);
  int base = 10;
  if (value.starts_with("0x")) {
    value.remove_prefix(2);
    base = 16;
  }
  const auto parsed = std::from_chars(value.data(), value.data() + value.size(), out.value, base);
  if (value.empty() || parsed.ec != std::errc() || parsed.ptr != value.data() + value.size()) {
    return fmt::format("expected a 64-bit integer, found {}", text);
  }
  if (slash == std::string_view::npos) return "";
  const std::string_view width = text.substr(slash + 1);
  const auto bytes = std::from_chars(width.data(), width.data() + width.size(), out.width);
  if (bytes.ec != std::errc() || bytes.ptr != width.data() + width.size() || out.width > wire::kMaxVarint ||
      out.width < wire::varint_size(out.value)) {
    return fmt::format("expected a width from {} to {} bytes, found {}", wire::varint_size(out.value), wire::kMaxVarint,
                       width);
  }
  return "";
}

}  // namespace

void append_number(std::string& out, uint64_t value, size_t width) {
  fmt::format_to(std::back_inserter(out), "{}", value);
  if (width != wire::varint_size(value)) fmt::format_to(std::back_inserter(out), "/{}", width);
}

void encode_number(std::vector<uint8_t>& out, Number number) {
  uint8_t buffer[wire::kMaxVarint];
  uint8_t* end = wire::put_varint(buffer, number.value);
  const auto shortest = static_cast<size_t>(end - buffer);
  for (size_t i = shortest; i < number.width && i < wire::kMaxVarint; ++i) {
    end[-1] |= 0x80;
    *end++ = 0;
  }
  out.insert(out.end(), buffer, end);
}

void append_quoted(std::string& out, std::span<const uint8_t> bytes) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const uint8_t b : bytes) {
    switch (b) {
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      case '"':
      case '\\':
        out += '\\';
        out += static_cast<char>(b);
        break;
      default:
        if (b >= 0x20 && b < 0x7f) {
          out += static_cast<char>(b);
        } else {
          out += "\\x";
          out += kHex[b >> 4];
          out += kHex[b & 15];
        }
    }
  }
  out += '"';
}

std::string split_line(std::string_view line, std::vector<Token>& out) {
  out.clear();
  for (;;) {
    while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
    if (line.empty()) return "";
    Token token;
    size_t end = 0;
    while (end < line.size() && !is_space(line[end]) && line[end] != '=') ++end;
    token.name = line.substr(0, end);
    line.remove_prefix(end);
    if (!line.empty() && line.front() == '=') {
      line.remove_prefix(1);
      if (!line.empty() && line.front() == '"') {
        token.text.emplace();
        std::string wrong = read_quoted(line, *token.text);
        if (!wrong.empty()) return wrong;
        if (!line.empty() && !is_space(line.front())) return "expected a space behind a quoted string";
      } else {
        end = 0;
        while (end < line.size() && !is_space(line[end])) ++end;
        token.number.emplace();
        std::string wrong = read_number(line.substr(0, end), *token.number);
        if (!wrong.empty()) return wrong;
        line.remove_prefix(end);
      }
    }
    out.push_back(std::move(token));
  }
}

}  // namespace traceaf::reader
