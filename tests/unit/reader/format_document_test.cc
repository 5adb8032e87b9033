// docs/format.md against the tables of the code, and its example against the reader.
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <map>
#include <sstream>

#include "emitter/wire/counters.h"
#include "emitter/wire/entries.h"
#include "emitter/wire/events.h"
#include "emitter/wire/rows.h"
#include "emitter/wire/tail.h"
#include "reader/read.h"
#include "reader/text.h"
#include "reader/validate.h"

namespace traceaf::reader {
namespace {

using Table = std::vector<std::vector<std::string>>;

const std::string& document() {
  static const std::string text = [] {
    std::ifstream in(TRACEAF_SOURCE_DIR "/docs/format.md");
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }();
  return text;
}

// The rows of the table whose header line begins with `header`, cells trimmed.
Table table(const std::string& header) {
  Table out;
  std::istringstream lines(document());
  std::string line;
  bool inside = false;
  while (std::getline(lines, line)) {
    if (line.rfind(header, 0) == 0) {
      inside = true;
      std::getline(lines, line);  // |---|
      continue;
    }
    if (!inside) continue;
    if (line.empty() || line[0] != '|') break;
    std::vector<std::string> cells;
    std::istringstream split(line.substr(1));
    std::string cell;
    while (std::getline(split, cell, '|')) {
      const size_t first = cell.find_first_not_of(' ');
      const size_t last = cell.find_last_not_of(' ');
      cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
    }
    out.push_back(cells);
  }
  return out;
}

// The contents of the fenced block of a language.
std::string block(const std::string& language) {
  const std::string fence = "```" + language + "\n";
  const size_t begin = document().find(fence);
  if (begin == std::string::npos) return "";
  const size_t from = begin + fence.size();
  return document().substr(from, document().find("```", from) - from);
}

std::vector<uint8_t> example_bytes() {
  std::vector<uint8_t> out;
  std::istringstream lines(block("hex"));
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream bytes(line.substr(0, line.find('#')));
    std::string byte;
    while (bytes >> byte) out.push_back(static_cast<uint8_t>(std::stoul(byte, nullptr, 16)));
  }
  return out;
}

TEST(FormatDocument, EventTableIsThatOfTheCode) {
  Table expected;
  for (const auto& e : wire::kEvents)
    expected.push_back({std::to_string(e.number), std::string(e.name), std::string(e.arguments)});
  EXPECT_EQ(table("| number | event |"), expected);
}

TEST(FormatDocument, RowTableIsThatOfTheCode) {
  Table expected;
  for (const auto& r : wire::kRows)
    expected.push_back({std::to_string(r.tag), std::string(r.name), std::string(r.fields)});
  EXPECT_EQ(table("| tag | row |"), expected);
}

TEST(FormatDocument, CounterTableIsThatOfTheCode) {
  Table expected;
  for (const auto& c : wire::kCounters)
    expected.push_back({std::to_string(c.number), std::string(c.name), std::string(c.meaning)});
  EXPECT_EQ(table("| number | counter |"), expected);
}

TEST(FormatDocument, EntryTableIsThatOfTheCode) {
  Table expected;
#define TRACEAF_ENTRY(number, id, name) expected.push_back({#number, #id, name});
#include "emitter/wire/entries.inc"
#undef TRACEAF_ENTRY
  EXPECT_EQ(table("| number | entry |"), expected);
}

TEST(FormatDocument, TailLayoutIsThatOfTheCode) {
  const std::map<std::string, std::pair<size_t, size_t>> header = {
#define TRACEAF_FIELD(name)                                                     \
  {                                                                             \
#name, { offsetof(wire::TailHeader, name), sizeof(wire::TailHeader::name) } \
  }
      TRACEAF_FIELD(magic),      TRACEAF_FIELD(version), TRACEAF_FIELD(header_bytes),
      TRACEAF_FIELD(slot_bytes), TRACEAF_FIELD(slots),   TRACEAF_FIELD(state),
      TRACEAF_FIELD(request),    TRACEAF_FIELD(ended),   TRACEAF_FIELD(pid)};
#undef TRACEAF_FIELD
  const std::map<std::string, std::pair<size_t, size_t>> slot = {
#define TRACEAF_FIELD(name)                                                     \
  {                                                                             \
#name, { offsetof(wire::SlotHeader, name), sizeof(wire::SlotHeader::name) } \
  }
      TRACEAF_FIELD(state), TRACEAF_FIELD(kind), TRACEAF_FIELD(gen),   TRACEAF_FIELD(m),
      TRACEAF_FIELD(time),  TRACEAF_FIELD(used), TRACEAF_FIELD(ticket)};
#undef TRACEAF_FIELD
  const auto check = [](const Table& rows, const auto& fields) {
    EXPECT_EQ(rows.size(), fields.size());
    for (const auto& row : rows) {
      ASSERT_EQ(row.size(), 3U);
      const std::string name = row[2].substr(0, row[2].find_first_of(": "));
      ASSERT_TRUE(fields.contains(name)) << name;
      EXPECT_EQ(row[0], std::to_string(fields.at(name).first)) << name;
      EXPECT_EQ(row[1], std::to_string(fields.at(name).second)) << name;
    }
  };
  check(table("| offset | bytes | header"), header);
  check(table("| offset | bytes | slot"), slot);
}

TEST(FormatDocument, ExampleReadsAsItsTextSays) {
  const auto bytes = example_bytes();
  ASSERT_GT(bytes.size(), 200U);
  std::string text;
  EXPECT_FALSE(bytes_to_text(bytes, "example", [&](std::string_view piece) {
    text += piece;
    return true;
  }));
  EXPECT_EQ(text, block("trace"));
  auto again = text_to_bytes(block("trace"), "example");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value(), bytes);
}

TEST(FormatDocument, ExampleMeansWhatTheDocumentSays) {
  const auto bytes = example_bytes();
  auto result = read_profile_bytes(bytes, {}, "example");
  ASSERT_TRUE(result.ok()) << result.error().text();
  const Profile& p = result.value();
  EXPECT_TRUE(p.ending.complete) << p.ending.note;
  EXPECT_EQ(p.allocated.count, 2U);
  EXPECT_EQ(p.allocated.bytes, 48U);
  EXPECT_EQ(p.freed.count, 1U);
  ASSERT_EQ(p.live_blocks.size(), 1U);
  EXPECT_EQ(p.live_blocks[0].address, 65584U);
  EXPECT_EQ(p.live_blocks[0].birth_ns, 1300U);
  ASSERT_EQ(p.sites.size(), 1U);
  EXPECT_EQ(p.sites[0].entry, static_cast<uint8_t>(wire::Entry::k_malloc));
  const Node& node = p.nodes[p.sites[0].node];
  EXPECT_EQ(node.offset, 291U);
  EXPECT_EQ(node.parent, static_cast<uint32_t>(wire::NodeRoot::kComplete));
  EXPECT_EQ(p.modules[node.module].build_id, "abcd");
  EXPECT_EQ(p.process.command, (std::vector<std::string>{"a", "-v"}));
  auto report = validate_bytes(bytes, "example");
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report.value().findings.empty()) << report.value().findings[0].text();
}

TEST(FormatDocument, NamesEveryRuleOfTheValidator) {
  // The rules are string literals of the checkers.
  size_t rules = 0;
  for (const char* file : {"validate.cc", "validate_tables.cc", "validate_rows.cc", "validate_events.cc"}) {
    std::ifstream in(std::string(TRACEAF_SOURCE_DIR "/reader/") + file);
    std::ostringstream all;
    all << in.rdbuf();
    const std::string source = all.str();
    for (const char* call : {".error(\"", ".warning(\""}) {
      for (size_t at = source.find(call); at != std::string::npos; at = source.find(call, at + 1)) {
        const size_t begin = at + std::string(call).size();
        const std::string rule = source.substr(begin, source.find('"', begin) - begin);
        EXPECT_NE(document().find("`" + rule + "`"), std::string::npos) << rule << " of " << file;
        ++rules;
      }
    }
  }
  EXPECT_GT(rules, 25U);
}

}  // namespace
}  // namespace traceaf::reader
