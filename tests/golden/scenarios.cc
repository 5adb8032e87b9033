// Goldens as text and back: outcome, expectations and tail as comment lines, then the trace in the text form.
#include "tests/golden/scenarios.h"

#include <fmt/format.h>

#include <algorithm>

#include "reader/text.h"
#include "reader/text_tokens.h"

namespace traceaf::golden {
namespace {

using reader::Token;

uint64_t number(const std::vector<Token>& tokens, std::string_view name) {
  for (const auto& token : tokens) {
    if (token.name == name && token.number) return token.number->value;
  }
  return 0;
}

std::string text_of(const std::vector<Token>& tokens, std::string_view name) {
  for (const auto& token : tokens) {
    if (token.name == name && token.text) return *token.text;
  }
  return "";
}

std::string quoted(std::string_view text) {
  std::string out;
  reader::append_quoted(out, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  return out;
}

}  // namespace

testing::Bytes tail_bytes(const Golden& golden) {
  if (!golden.has_tail) return {};
  testing::TailWriter tail(static_cast<uint32_t>(golden.tail_slots.size()));
  tail.clock(1'000'000'000, 1000).closed(golden.tail_closed);
  tail.ended(static_cast<wire::EndReason>(golden.tail_ended));
  uint32_t index = 0;
  for (const auto& slot : golden.tail_slots)
    tail.slot(index++, slot.state, slot.kind, slot.gen, slot.m, slot.time, slot.body);
  return tail.bytes();
}

std::string golden_text(const Golden& golden) {
  std::string out = golden.failure.empty() ? "# SUCCESS\n" : fmt::format("# FAILURE text={}\n", quoted(golden.failure));
  for (const auto& [name, value] : golden.expect) out += fmt::format("# expect {}={}\n", name, value);
  if (golden.has_tail) out += fmt::format("# tail closed={} ended={}\n", golden.tail_closed, golden.tail_ended);
  for (const auto& slot : golden.tail_slots) {
    out += fmt::format("# slot state={} kind={} gen={} m={} time={} data=", static_cast<uint32_t>(slot.state),
                       static_cast<uint32_t>(slot.kind), slot.gen, slot.m, slot.time);
    reader::append_quoted(out, slot.body);
    out += '\n';
  }
  // An error only says that parts became Bytes lines.
  (void)reader::bytes_to_text(golden.trace, "golden", [&](std::string_view piece) {
    out += piece;
    return true;
  });
  return out;
}

Golden parse_golden(const std::string& text, std::string* wrong) {
  Golden golden;
  bool outcome = false;
  std::string_view rest = text;
  std::vector<Token> tokens;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (!line.starts_with("# ")) continue;
    line.remove_prefix(2);
    *wrong = reader::split_line(line, tokens);
    if (!wrong->empty()) return golden;
    if (tokens.empty()) continue;
    if (tokens[0].name == "SUCCESS" || tokens[0].name == "FAILURE") {
      outcome = true;
      golden.failure = text_of(tokens, "text");
    } else if (tokens[0].name == "expect") {
      golden.expect[std::string(tokens.at(1).name)] = tokens.at(1).number.value().value;
    } else if (tokens[0].name == "tail") {
      golden.has_tail = true;
      golden.tail_closed = number(tokens, "closed");
      golden.tail_ended = number(tokens, "ended");
    } else if (tokens[0].name == "slot") {
      const std::string data = text_of(tokens, "data");
      golden.tail_slots.push_back({static_cast<wire::SlotState>(number(tokens, "state")),
                                   static_cast<wire::SlotKind>(number(tokens, "kind")),
                                   number(tokens, "gen"),
                                   number(tokens, "m"),
                                   number(tokens, "time"),
                                   {data.begin(), data.end()}});
    }
  }
  if (!outcome) *wrong = "expected \"# SUCCESS\" or \"# FAILURE text=...\", found neither";
  auto trace = reader::text_to_bytes(text, "golden");
  if (!trace.ok()) {
    *wrong = trace.error().text();
  } else {
    golden.trace = std::move(trace.value());
  }
  return golden;
}

}  // namespace traceaf::golden
