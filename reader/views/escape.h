// Text from a trace made safe to show: names, paths and command lines may hold any bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace traceaf::reader::views {

// For a terminal: control characters (C0, DEL, C1), bytes that are not UTF-8 and characters that reorder text become
// \xNN for each byte. Everything else is kept.
std::string terminal_safe(std::string_view text);
// For JSON: valid UTF-8, with \xNN for each byte that is not. Control characters are left to the JSON writer.
std::string valid_utf8(std::string_view text);
// The words as one command line that a POSIX shell would split into the same words.
std::string shell_quoted(const std::vector<std::string>& words);
// Columns that `text` (already safe) takes on a terminal, counting a code point as one.
size_t display_width(std::string_view text);

}  // namespace traceaf::reader::views
