// Documents as text (see render.h).
#include <fmt/format.h>

#include <algorithm>

#include "reader/views/escape.h"
#include "reader/views/render.h"
#include "reader/views/units.h"

namespace traceaf::reader::views {
namespace {

constexpr std::string_view kBold = "\x1b[1m", kDim = "\x1b[2m", kYellow = "\x1b[33m", kReset = "\x1b[0m";
constexpr size_t kLeastName = 24;  // columns that a function name keeps on a narrow terminal
constexpr std::string_view kGuessed = " [guessed]";
constexpr std::string_view kGuessedMeans =
    "[guessed]: found by a frame pointer, across code without unwind tables; the function that called that code may be "
    "missing";

bool is_number(const Value& value) {
  return value.unit != Unit::kText && value.unit != Unit::kList && value.unit != Unit::kFlag;
}

std::string padding(size_t width, size_t used) { return std::string(width > used ? width - used : 0, ' '); }

// The last `width` - 3 characters of a name are worth less than its first ones.
std::string fitted(const std::string& name, size_t width) {
  if (display_width(name) <= width) return name;
  std::string cut;
  size_t columns = 0;
  for (const char c : name) {
    const bool starts = (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    if (starts && columns == width - 3) break;
    columns += starts ? 1 : 0;
    cut += c;
  }
  return cut + "...";
}

class TextRenderer {
 public:
  TextRenderer(const TextStyle& style, const Out& out) : style_(style), out_(out) {}

  void run(const Document& document) {
    for (const auto& part : document.parts) {
      std::visit([this](const auto& p) { show(p); }, part);
      explain();
    }
  }

 private:
  std::string paint(std::string_view colour, const std::string& text) const {
    if (!style_.colour || text.empty()) return text;
    return std::string(colour) + text + std::string(kReset);
  }
  std::string toned(Tone tone, const std::string& text) const {
    switch (tone) {
      case Tone::kTitle:
        return paint(kBold, text);
      case Tone::kWarning:
        return paint(kYellow, text);
      case Tone::kQuiet:
        return paint(kDim, text);
      case Tone::kPlain:
        break;
    }
    return text;
  }
  void line(std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    blank_ = text.empty();
    started_ = true;
    out_(text + "\n");
  }
  void gap() {
    if (started_ && !blank_) line({});
  }
  void title(const std::string& text) {
    if (text.empty()) return;
    gap();
    line(paint(kBold, terminal_safe(text)));
  }

  void show(const Fields& group) {
    size_t width = 0;
    for (const Field& field : group.fields) width = std::max(width, display_width(terminal_safe(field.label)));
    if (width == 0) return;
    title(group.title);
    for (const Field& field : group.fields) {
      if (field.label.empty()) continue;
      const std::string label = terminal_safe(field.label);
      line("  " + paint(kDim, label) + padding(width, display_width(label)) + "  " +
           terminal_safe(value_text(field.value)));
    }
  }

  void show(const Lines& group) {
    size_t width = 0;
    for (const Line& l : group.lines) width = std::max(width, display_width(terminal_safe(l.label)));
    for (const Line& l : group.lines) {
      const std::string label = terminal_safe(l.label);
      const std::string body = toned(l.tone, terminal_safe(l.text));
      if (width == 0) {
        line(body);
      } else {
        line(paint(kBold, label) + padding(width, display_width(label)) + "  " + body);
      }
    }
  }

  // Below the first part with a guessed frame.
  void explain() {
    if (!guessed_ || explained_) return;
    explained_ = true;
    line(paint(kDim, std::string(kGuessedMeans)));
  }

  // A frame in `columns` columns (0: as many as it takes).
  std::string frame_text(const Frame& frame, bool full, size_t columns) {
    std::string where;
    if (!frame.file.empty()) {
      const std::string& file = frame.file;
      where = full ? file : file.substr(file.rfind('/') + 1);
      if (frame.line != 0) where += fmt::format(":{}", frame.line);
    } else if (frame.function.find('+') == std::string::npos && !frame.module.empty()) {
      where = frame.module.substr(frame.module.rfind('/') + 1);
    }
    where = terminal_safe(where);
    std::string name = terminal_safe(full ? frame.function : frame.short_name);
    if (columns != 0) {
      const size_t rest = display_width(where) + 2 + (frame.guessed ? kGuessed.size() : 0);
      name = fitted(name, std::max(kLeastName, columns > rest ? columns - rest : 0));
    }
    guessed_ |= frame.guessed;
    const std::string mark = frame.guessed ? paint(kDim, std::string(kGuessed)) : "";
    if (where.empty()) return name + mark;
    return name + "  " + paint(kDim, where) + (full && frame.inlined ? paint(kDim, " (inlined)") : "") + mark;
  }

  void stack(const Table& table, const Stack& stack, const std::string& lead) {
    const bool full = style_.full || table.depth == 0;
    const size_t used = display_width(lead);
    const size_t columns = style_.width == 0 || full ? 0 : style_.width > used ? style_.width - used : 1;
    const std::string margin(used, ' ');
    const size_t first = full ? 0 : std::min(stack.first, stack.frames.size());
    const size_t end = full ? stack.frames.size() : std::min(stack.frames.size(), first + table.depth);
    bool headed = false;
    const auto put = [&](const std::string& text, bool caller) {
      line((headed ? margin : lead) + (caller ? "  " : "") + text);
      headed = true;
    };
    for (size_t i = first; i < end; ++i) {
      put(frame_text(*stack.frames[i], full, columns == 0 ? 0 : columns > 2 ? columns - 2 : 1), i != first);
    }
    if (end < stack.frames.size() && table.depth > 1) {
      put(paint(kDim, fmt::format("... {} more", stack.frames.size() - end)), true);
    } else if (!stack.cut.empty() && (table.depth != 1 || !headed)) {
      put(paint(kDim, stack.cut), headed);
    }
    if (!headed) put("[no stack]", false);
  }

  void show(const Table& table) {
    title(table.title);
    if (table.rows.empty()) {
      if (!table.nothing.empty()) line(std::string(table.indent, ' ') + terminal_safe(table.nothing));
      return;
    }
    std::vector<size_t> shown;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (!table.columns[c].label.empty()) shown.push_back(c);
    }
    const bool headed =
        std::any_of(shown.begin(), shown.end(), [&](size_t c) { return table.columns[c].label != " "; });
    const size_t rows = table.text_rows == 0 ? table.rows.size() : std::min(table.text_rows, table.rows.size());
    std::vector<std::vector<std::string>> cells(rows);
    std::vector<size_t> widths(table.columns.size(), 0);
    for (const size_t c : shown) widths[c] = headed ? table.columns[c].label.size() : 0;
    for (size_t r = 0; r < rows; ++r) {
      cells[r].resize(table.columns.size());
      for (const size_t c : shown) {
        cells[r][c] = terminal_safe(value_text(table.rows[r].cells[c]));
        widths[c] = std::max(widths[c], display_width(cells[r][c]));
      }
    }
    const auto cell = [&](size_t c, const std::string& text) {
      const std::string pad = padding(widths[c], display_width(text));
      return is_number(table.rows[0].cells[c]) ? pad + text : text + pad;
    };
    const std::string indent(table.indent, ' ');
    if (headed) {
      std::string head = indent;
      for (const size_t c : shown) head += cell(c, table.columns[c].label) + "  ";
      line(paint(kDim, head + (table.stacks ? "site and its callers" : "")));
    }
    for (size_t r = 0; r < rows; ++r) {
      std::string lead = indent;
      for (const size_t c : shown) lead += cell(c, cells[r][c]) + "  ";
      if (table.stacks) {
        stack(table, table.rows[r].stack, lead);
      } else {
        line(lead);
      }
    }
    if (!table.more.empty()) line(indent + paint(kDim, terminal_safe(table.more)));
  }

  void show(const Tree& tree) {
    title(tree.title);
    if (tree.rows.empty()) {
      line(terminal_safe(tree.nothing));
      return;
    }
    const auto value = [&](const Amount& a) { return tree.by_bytes ? format_bytes(a.bytes) : format_count(a.count); };
    size_t width = 5;
    for (const TreeRow& row : tree.rows) width = std::max(width, value(row.total).size());
    const auto lead = [&](const Amount& total, uint32_t indent, const char* mark) {
      const std::string part =
          format_share(tree.by_bytes ? total.bytes : total.count, tree.by_bytes ? tree.whole.bytes : tree.whole.count);
      const std::string amount = value(total);
      return padding(6, part.size()) + part + "  " + padding(width, amount.size()) + amount + "  " +
             std::string(size_t{2} * indent, ' ') + mark;
    };
    // What a row left out is said behind its last descendant.
    std::vector<size_t> open;
    const auto close = [&](int64_t parent) {
      while (!open.empty() && static_cast<int64_t>(open.back()) != parent) {
        const TreeRow& row = tree.rows[open.back()];
        open.pop_back();
        if (row.left_out == 0) continue;
        line(lead(row.left_out_total, row.indent + 1, "- ") +
             paint(kDim, fmt::format("[{} more below {}%]", format_count(row.left_out), tree.threshold)));
      }
    };
    for (size_t i = 0; i < tree.rows.size(); ++i) {
      const TreeRow& row = tree.rows[i];
      close(row.parent);
      const std::string start = lead(row.total, row.indent, i == 0 ? "" : row.branch ? "- " : "  ");
      const size_t used = display_width(start);
      const size_t columns = style_.width == 0 || tree.full ? 0 : style_.width > used ? style_.width - used : 1;
      line(start + (row.frame == nullptr ? terminal_safe(row.label) : frame_text(*row.frame, tree.full, columns)));
      open.push_back(i);
    }
    close(-2);
  }

  const TextStyle& style_;
  const Out& out_;
  bool started_ = false;
  bool blank_ = false;
  bool guessed_ = false;  // a frame with the mark was shown
  bool explained_ = false;
};

}  // namespace

std::string value_text(const Value& value) {
  switch (value.unit) {
    case Unit::kNone:
      return "-";
    case Unit::kText:
      return value.text;
    case Unit::kCount:
      return format_count(value.number);
    case Unit::kId:
      return fmt::format("{}", value.number);
    case Unit::kBytes:
      return format_bytes(value.number);
    case Unit::kNs:
      return format_duration(value.number);
    case Unit::kShare:
      return format_share(value.number, value.whole);
    case Unit::kAddress:
      return fmt::format("0x{:x}", value.number);
    case Unit::kFlag:
      return value.number != 0 ? "yes" : "no";
    case Unit::kList:
      return fmt::format("{}", fmt::join(value.list, ", "));
  }
  return {};
}

void render_text(const Document& document, const TextStyle& style, const Out& out) {
  TextRenderer(style, out).run(document);
}

}  // namespace traceaf::reader::views
