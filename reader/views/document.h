// What a view says, independent of how it is shown: typed values in groups, tables, trees and sentences. The renderers
// (render_text.h, render_json.h) turn it into output; frames are pointed to and must outlive the document.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "reader/views/names.h"

namespace traceaf::reader::views {

enum class Unit : uint8_t {
  kNone,  // nothing known: JSON null
  kText,
  kCount,  // grouped digits
  kId,     // a number that names something: plain digits
  kBytes,
  kNs,
  kShare,    // part of a whole: JSON a number in percent
  kAddress,  // JSON a string "0x..."
  kFlag,
  kList  // of texts
};

struct Value {
  Unit unit = Unit::kNone;
  uint64_t number = 0;
  uint64_t whole = 0;  // of kShare
  std::string text;
  std::vector<std::string> list;
};
inline Value none() { return {}; }
inline Value text(std::string s) { return {Unit::kText, 0, 0, std::move(s), {}}; }
inline Value count(uint64_t n) { return {Unit::kCount, n, 0, {}, {}}; }
inline Value id(uint64_t n) { return {Unit::kId, n, 0, {}, {}}; }
inline Value bytes(uint64_t n) { return {Unit::kBytes, n, 0, {}, {}}; }
inline Value ns(uint64_t n) { return {Unit::kNs, n, 0, {}, {}}; }
inline Value share(uint64_t part, uint64_t whole) { return {Unit::kShare, part, whole, {}, {}}; }
inline Value address(uint64_t n) { return {Unit::kAddress, n, 0, {}, {}}; }
inline Value flag(bool b) { return {Unit::kFlag, b ? 1U : 0U, 0, {}, {}}; }
inline Value list(std::vector<std::string> l) { return {Unit::kList, 0, 0, {}, std::move(l)}; }

// An empty key: shown as text only. An empty label: in JSON only.
struct Field {
  std::string key;
  std::string label;
  Value value;
};

// Members of the JSON object `key` (empty: of the document itself); in text one "label  value" a line.
struct Fields {
  std::string key;
  std::string title;
  std::vector<Field> fields;
};

enum class Tone : uint8_t { kPlain, kTitle, kWarning, kQuiet };

// A sentence for people; not in JSON.
struct Line {
  std::string label;  // stands in a column of its own, aligned over consecutive lines
  std::string text;
  Tone tone = Tone::kPlain;
};
struct Lines {
  std::vector<Line> lines;
};

struct Stack {
  std::vector<const Frame*> frames;  // innermost first
  size_t first = 0;                  // where the short form starts: behind the plumbing
  std::string cut;                   // why it is not whole, in brackets; empty when it is
};

struct Column {
  std::string key;
  std::string label;
};
struct Row {
  std::vector<Value> cells;  // one for each column
  Stack stack;
};
struct Table {
  std::string key;  // JSON: an array of objects
  std::string title;
  std::vector<Column> columns;
  bool stacks = false;  // rows have stacks
  size_t depth = 0;     // most frames of a stack shown in text; 0: all, plumbing included
  std::vector<Row> rows;
  std::string nothing;   // said in text instead of a table without rows
  std::string more;      // said in text below the rows: what was left out
  size_t indent = 0;     // of the rows in text
  size_t text_rows = 0;  // most rows shown in text; 0: all
};

struct TreeRow {
  int64_t parent = -1;           // index into rows, -1 for the top
  uint32_t depth = 0;            // frames between this and the top
  bool branch = false;           // in text: has siblings, or its parent has blocks of its own
  uint32_t indent = 0;           // in text: only forks indent
  const Frame* frame = nullptr;  // null: `label`
  std::string label;
  Amount total, self;
  uint64_t left_out = 0;  // children too small to be shown
  Amount left_out_total;
};
struct Tree {
  std::string key;
  std::string title;
  bool by_bytes = true;
  Amount whole;               // 100%
  double threshold = 0;       // percent below which children are left out
  bool full = false;          // text: whole names and paths
  std::vector<TreeRow> rows;  // preorder
  std::string nothing;
};

struct Document {
  std::vector<std::variant<Fields, Lines, Table, Tree>> parts;
};

}  // namespace traceaf::reader::views
