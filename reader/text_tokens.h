// The smallest pieces of the text form: numbers with a width, quoted bytes, lines of name=value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace traceaf::reader {

// An integer and how many bytes its encoding has; width 0: as few as possible.
struct Number {
  uint64_t value = 0;
  size_t width = 0;
};

// "5", or "5/3" when three bytes were used where one would do.
void append_number(std::string& out, uint64_t value, size_t width);
// Bytes of `number`. A width below the shortest encoding or above 10 gives the shortest.
void encode_number(std::vector<uint8_t>& out, Number number);
// Double quotes around; printable ASCII as it is; \n \t \r \" \\; else \xNN. Go reads it as a string literal.
void append_quoted(std::string& out, std::span<const uint8_t> bytes);

// One token of a line: a bare word (no '='), name=number or name="bytes".
struct Token {
  std::string_view name;
  std::optional<Number> number;
  std::optional<std::string> text;
};

// Splits a line into tokens. Returns what is wrong with it, or an empty string.
std::string split_line(std::string_view line, std::vector<Token>& out);

}  // namespace traceaf::reader
