// Documents as JSON (see render.h).
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "reader/views/escape.h"
#include "reader/views/render.h"

namespace traceaf::reader::views {
namespace {

using Json = nlohmann::ordered_json;

// Rises when a key changes its meaning or goes away; new keys do not change it.
constexpr int kSchemaVersion = 1;

Json string(std::string_view raw) { return valid_utf8(raw); }

Json json_of(const Value& value) {
  switch (value.unit) {
    case Unit::kNone:
      return nullptr;
    case Unit::kText:
      return string(value.text);
    case Unit::kCount:
    case Unit::kId:
    case Unit::kBytes:
    case Unit::kNs:
      return value.number;
    case Unit::kShare:
      if (value.whole == 0) return nullptr;
      return std::round(10000 * static_cast<double>(value.number) / static_cast<double>(value.whole)) / 100;
    case Unit::kAddress:
      return fmt::format("0x{:x}", value.number);
    case Unit::kFlag:
      return value.number != 0;
    case Unit::kList: {
      Json array = Json::array();
      for (const std::string& item : value.list) array.push_back(string(item));
      return array;
    }
  }
  return nullptr;
}

Json json_of(const Frame& frame) {
  Json json;
  json["function"] = string(frame.function);
  if (!frame.file.empty()) json["file"] = string(frame.file);
  if (frame.line != 0) json["line"] = frame.line;
  if (!frame.module.empty()) json["module"] = string(frame.module);
  if (frame.inlined) json["inlined"] = true;
  if (frame.guessed) json["guessed"] = true;
  return json;
}

Json json_of(const Table& table, const Row& row) {
  Json json = Json::object();
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (!table.columns[i].key.empty()) json[table.columns[i].key] = json_of(row.cells[i]);
  }
  if (!table.stacks) return json;
  const Stack& stack = row.stack;
  if (stack.first < stack.frames.size()) {
    const Json site = json_of(*stack.frames[stack.first]);
    for (const char* key : {"function", "file", "line"}) {
      if (site.contains(key)) json[key] = site[key];
    }
  }
  json["stack_complete"] = stack.cut.empty();
  Json frames = Json::array();
  for (const Frame* frame : stack.frames) frames.push_back(json_of(*frame));
  json["stack"] = std::move(frames);
  return json;
}

Json json_of(const Tree& tree, size_t index) {
  const TreeRow& row = tree.rows[index];
  Json json;
  json["id"] = index;
  json["parent"] = row.parent;
  json["depth"] = row.depth;
  if (row.frame != nullptr) {
    json.update(json_of(*row.frame));
  } else {
    json["function"] = string(row.label);
  }
  json["total_bytes"] = row.total.bytes;
  json["total_blocks"] = row.total.count;
  json["self_bytes"] = row.self.bytes;
  json["self_blocks"] = row.self.count;
  const uint64_t part = tree.by_bytes ? row.total.bytes : row.total.count;
  const uint64_t whole = tree.by_bytes ? tree.whole.bytes : tree.whole.count;
  json["share_percent"] = json_of(share(part, whole));
  if (row.left_out != 0) {
    json["left_out_children"] = row.left_out;
    json["left_out_bytes"] = row.left_out_total.bytes;
    json["left_out_blocks"] = row.left_out_total.count;
  }
  return json;
}

class Writer {
 public:
  explicit Writer(const Out& out) : out_(out) {
    out_("{");
    member("schema_version", kSchemaVersion);
  }

  void member(const std::string& key, const Json& value) {
    begin(key);
    out_(value.dump());
  }
  template <typename Item>
  void array(const std::string& key, size_t size, Item item) {
    begin(key);
    out_("[");
    for (size_t i = 0; i < size; ++i) {
      out_(i == 0 ? "\n    " : ",\n    ");
      out_(item(i).dump());
    }
    out_(size == 0 ? "]" : "\n  ]");
  }
  void end() { out_("\n}\n"); }

 private:
  void begin(const std::string& key) {
    out_(first_ ? "\n  " : ",\n  ");
    first_ = false;
    out_(Json(key).dump());
    out_(": ");
  }

  const Out& out_;
  bool first_ = true;
};

}  // namespace

void render_json(const Document& document, const Out& out) {
  Writer writer(out);
  for (const auto& part : document.parts) {
    if (const auto* fields = std::get_if<Fields>(&part)) {
      Json object = Json::object();
      for (const Field& field : fields->fields) {
        if (field.key.empty()) continue;
        if (fields->key.empty()) {
          writer.member(field.key, json_of(field.value));
        } else {
          object[field.key] = json_of(field.value);
        }
      }
      if (!fields->key.empty()) writer.member(fields->key, object);
    } else if (const auto* table = std::get_if<Table>(&part)) {
      if (table->key.empty()) continue;
      writer.array(table->key, table->rows.size(), [&](size_t i) { return json_of(*table, table->rows[i]); });
    } else if (const auto* tree = std::get_if<Tree>(&part)) {
      writer.array(tree->key, tree->rows.size(), [&](size_t i) { return json_of(*tree, i); });
    }
  }
  writer.end();
}

}  // namespace traceaf::reader::views
