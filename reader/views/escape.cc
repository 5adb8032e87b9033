// Text from a trace made safe to show (see escape.h).
#include "reader/views/escape.h"

#include <fmt/format.h>

#include <cstdint>

namespace traceaf::reader::views {
namespace {

// Bytes of the UTF-8 sequence at the start of `text` and its code point; 0 when it is none (overlong forms,
// surrogates and values above U+10FFFF are none).
size_t decode(std::string_view text, uint32_t* code) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) {
    *code = first;
    return 1;
  }
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return 0;
  uint32_t value = first & (0xff >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3f);
  }
  static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[bytes] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return 0;
  *code = value;
  return bytes;
}

bool harms_terminal(uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return true;
  // Line and paragraph separators; marks, embeddings, overrides and isolates of direction.
  return code == 0x2028 || code == 0x2029 || code == 0x200e || code == 0x200f || code == 0x061c ||
         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

template <typename Bad>
std::string filter(std::string_view text, Bad bad) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    uint32_t code = 0;
    size_t bytes = decode(text, &code);
    const bool escape = bytes == 0 || bad(code);
    if (bytes == 0) bytes = 1;
    for (size_t i = 0; i < bytes; ++i) {
      if (escape) {
        out += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[i]));
      } else {
        out += text[i];
      }
    }
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace

std::string terminal_safe(std::string_view text) { return filter(text, harms_terminal); }

std::string valid_utf8(std::string_view text) {
  return filter(text, [](uint32_t) { return false; });
}

std::string shell_quoted(const std::vector<std::string>& words) {
  static constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:=@%,^";
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) {
      if (c == '\'') {
        line += "'\\''";
      } else {
        line += c;
      }
    }
    line += '\'';
  }
  return line;
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  for (const char c : text) width += (static_cast<uint8_t>(c) & 0xc0) != 0x80 ? 1 : 0;
  return width;
}

}  // namespace traceaf::reader::views
