// From a document to output: text for people, JSON for programs.
#pragma once

#include <functional>
#include <string_view>

#include "reader/views/document.h"

namespace traceaf::reader::views {

// Takes the next piece of output.
using Out = std::function<void(std::string_view)>;

struct TextStyle {
  bool colour = false;
  size_t width = 0;   // columns of the terminal: function names are shortened to fit; 0: never
  bool full = false;  // whole function names and paths
};

// Every text that came from the trace is made safe for a terminal.
void render_text(const Document& document, const TextStyle& style, const Out& out);

// One object, always valid UTF-8. A row of a table is one line.
void render_json(const Document& document, const Out& out);

// `value` as in a table cell of the text form, not yet made safe.
std::string value_text(const Value& value);

}  // namespace traceaf::reader::views
