// Decoding of rows (see rows.h).
#include "reader/rows.h"

#include <fmt/format.h>

#include "emitter/wire/varint.h"

namespace traceaf::reader {
namespace {

// Reads the fields of a known row from its payload. Returns what is wrong, or an empty string. A payload that ends
// between two fields is that of an older writer.
std::string read_fields(const RowLayout& layout, RowDifferences& differences, RowView& row) {
  const uint8_t* at = row.payload.data();
  const uint8_t* const end = at + row.payload.size();
  for (uint8_t i = 0; i < layout.fields && at != end; ++i) {
    uint64_t value = 0;
    at = wire::get_varint(at, end, &value);
    if (at == nullptr)
      return fmt::format("expected field {} of row {}, found a cut or longer integer", layout.names[i], layout.name);
    if (layout.text[i]) {
      if (value > static_cast<size_t>(end - at)) {
        return fmt::format("expected {} bytes of field {} of row {}, found {}", value, layout.names[i], layout.name,
                           end - at);
      }
      row.text[i] = {reinterpret_cast<const char*>(at), static_cast<size_t>(value)};
      at += value;
    } else {
      row.value[i] = differences.decode(layout, i, value);
    }
    row.fields = i + 1U;
  }
  if (layout.pairs && row.fields == layout.fields) {
    const uint64_t pairs = row.value[layout.fields - 1];
    const uint8_t* const first = at;
    for (uint64_t i = 0; i < pairs; ++i) {
      for (int half = 0; half < 2; ++half) {
        uint64_t value = 0;
        at = wire::get_varint(at, end, &value);
        if (at == nullptr) return fmt::format("expected {} pairs in row {}, found {}", pairs, layout.name, i);
      }
    }
    row.pairs = {first, at};
  }
  row.extra = {at, end};
  return "";
}

}  // namespace

std::optional<RowFault> for_each_row(std::span<const uint8_t> bytes, const std::function<void(const RowView&)>& visit) {
  const uint8_t* at = bytes.data();
  const uint8_t* const end = at + bytes.size();
  RowDifferences differences;
  while (at != end) {
    RowView row;
    row.at = static_cast<size_t>(at - bytes.data());
    uint64_t length = 0;
    at = wire::get_varint(at, end, &row.tag);
    if (at != nullptr) at = wire::get_varint(at, end, &length);
    if (at == nullptr) return RowFault{row.at, "expected tag and length of a row, found a cut or longer integer"};
    if (length > static_cast<size_t>(end - at)) {
      return RowFault{row.at,
                      fmt::format("expected {} bytes of a row with tag {}, found {}", length, row.tag, end - at)};
    }
    row.payload = {at, static_cast<size_t>(length)};
    at += length;
    row.layout = find_row(row.tag);
    if (row.layout != nullptr) {
      std::string wrong = read_fields(*row.layout, differences, row);
      if (!wrong.empty()) return RowFault{row.at, std::move(wrong)};
    }
    visit(row);
  }
  return {};
}

void for_each_counter(const RowView& row, const std::function<void(uint64_t, uint64_t)>& visit) {
  const uint8_t* at = row.pairs.data();
  const uint8_t* const end = at + row.pairs.size();
  while (at != end) {
    uint64_t number = 0;
    uint64_t value = 0;
    at = wire::get_varint(at, end, &number);
    at = wire::get_varint(at, end, &value);
    visit(number, value);
  }
}

}  // namespace traceaf::reader
