// Rows of our own tables (emitter/wire/rows.inc) from the bytes of an experimental batch of kind wire::kBatchRows.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "emitter/wire/rows.h"
#include "emitter/wire/varint.h"

namespace traceaf::reader {

inline constexpr size_t kMaxRowFields = 16;

// A field list of rows.inc, parsed: which fields are text, and which are coded as differences.
struct RowLayout {
  uint8_t tag = 0;
  std::string_view name;
  uint8_t fields = 0;
  bool pairs = false;  // ends in "(number value)*", as often as the field before says
  std::array<bool, kMaxRowFields> text{};
  std::array<bool, kMaxRowFields> difference{};
  std::array<std::string_view, kMaxRowFields> names{};
};

// The layouts in the order of wire::kRows.
inline constexpr auto kRowLayouts = [] {
  std::array<RowLayout, std::size(wire::kRows)> out{};
  size_t row = 0;
  for (const auto& spec : wire::kRows) {
    RowLayout& layout = out[row++];
    layout.tag = spec.tag;
    layout.name = spec.name;
    std::string_view rest = spec.fields;
    while (!rest.empty()) {
      const size_t space = rest.find(' ');
      std::string_view field = rest.substr(0, space);
      rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
      if (field.front() == '(') {
        layout.pairs = true;
        break;
      }
      const bool text = field.size() > 2 && field.substr(field.size() - 2) == ":s";
      layout.difference[layout.fields] = field.size() > 2 && field.substr(field.size() - 2) == ":d";
      if (text || layout.difference[layout.fields]) field.remove_suffix(2);
      layout.names[layout.fields] = field;
      layout.text[layout.fields++] = text;
    }
  }
  return out;
}();

constexpr const RowLayout* find_row(uint64_t tag) {
  for (const auto& layout : kRowLayouts) {
    if (layout.tag == tag) return &layout;
  }
  return nullptr;
}

// The fields of the rows before in a batch, from which differences count.
class RowDifferences {
 public:
  uint64_t decode(const RowLayout& layout, size_t field, uint64_t coded) {
    if (!layout.difference[field]) return coded;
    return last_[index(layout)][field] += wire::unzigzag(coded);
  }
  uint64_t encode(const RowLayout& layout, size_t field, uint64_t value) {
    if (!layout.difference[field]) return value;
    uint64_t& last = last_[index(layout)][field];
    const uint64_t coded = wire::zigzag(value - last);
    last = value;
    return coded;
  }

 private:
  static size_t index(const RowLayout& layout) { return static_cast<size_t>(&layout - kRowLayouts.data()); }
  std::array<std::array<uint64_t, kMaxRowFields>, std::size(wire::kRows)> last_{};
};

// One row. Integers and texts by position in the field list; what a shorter (older) row lacks is 0 or empty.
struct RowView {
  uint64_t tag = 0;
  const RowLayout* layout = nullptr;  // nullptr: a tag we do not know; only `payload` is valid
  std::array<uint64_t, kMaxRowFields> value{};
  std::array<std::string_view, kMaxRowFields> text{};
  size_t fields = 0;               // present
  std::span<const uint8_t> pairs;  // of Counters: the encoded pairs, as many as the field before says
  std::span<const uint8_t> extra;  // behind the fields that we know
  std::span<const uint8_t> payload;
  size_t at = 0;  // offset of its tag in the bytes
};

struct RowFault {
  size_t at = 0;
  std::string message;
};

// Calls `visit` for each row. A row whose fields do not fit its payload is a fault and ends the walk; rows before it
// were visited.
std::optional<RowFault> for_each_row(std::span<const uint8_t> bytes, const std::function<void(const RowView&)>& visit);

// Calls `visit` with number and value of each pair of a Counters row.
void for_each_counter(const RowView& row, const std::function<void(uint64_t, uint64_t)>& visit);

}  // namespace traceaf::reader
