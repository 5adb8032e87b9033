// Rows into tables (see contexts.h).
#include "reader/contexts.h"

#include <fmt/format.h>

#include <algorithm>

namespace traceaf::reader {
namespace {

// Rows looked at for one span; threads that open spans at one address within one generation are few.
constexpr size_t kSpanRowsTried = 64;

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return out;
}

std::vector<std::string> split_command(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = text.find('\0');
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return out;
}

}  // namespace

Contexts::Contexts() {
  nodes.resize(wire::kFirstNode);
  for (auto& root : nodes) root.defined = true;
  modules.resize(1);
}

uint32_t Contexts::node_index(uint64_t id) {
  if (id < wire::kFirstNode) return static_cast<uint32_t>(id);
  uint32_t& slot = node_ids_[id];
  if (slot == 0) {
    nodes.emplace_back();
    slot = static_cast<uint32_t>(nodes.size());
  }
  return slot - 1;
}

uint32_t Contexts::module_index(uint64_t id) {
  if (id == 0) return 0;
  uint32_t& slot = module_ids_[id];
  if (slot == 0) {
    modules.emplace_back();
    modules.back().id = static_cast<uint32_t>(id);
    slot = static_cast<uint32_t>(modules.size());
  }
  return slot - 1;
}

uint32_t Contexts::thread_index(uint64_t m) {
  uint32_t& slot = thread_ids_[m];
  if (slot == 0) {
    threads.emplace_back();
    threads.back().m = m;
    thread_births.push_back(0);
    slot = static_cast<uint32_t>(threads.size());
  }
  return slot - 1;
}

// The position of each field is its place in rows.inc.
void Contexts::take_process(const RowView& row) {
  live_exact = row.value[5] != 0;
  if (!has_process) {
    start_time = row.value[2];
    process.live_exact = live_exact;
  }
  has_process = true;
  process.pid = row.value[0];
  process.ppid = row.value[1];
  process.start_wall_ns = row.value[3];
  process.image = row.value[6];
  process.parent_pid = row.value[7];
  process.exe = row.text[8];
  process.command = split_command(row.text[9]);
  process.options = row.text[10];
  process.version = row.text[11];
  process.host = row.text[12];
}

void Contexts::take_module(const RowView& row) {
  if (row.value[0] == 0) return;  // "no module" has no row
  Module& module = modules[module_index(row.value[0])];
  module.flags |= row.value[1];
  module.start = row.value[2];
  module.end = row.value[3];
  module.bias = row.value[4];
  module.build_id = hex(row.text[5]);
  module.path = row.text[6];
}

void Contexts::take_thread(const RowView& row) {
  const uint32_t index = thread_index(row.value[0]);
  Thread& thread = threads[index];
  thread.tid = row.value[1];
  thread_births[index] = row.value[2];
  thread.flags |= row.value[3];
  if (row.value[5] != 0) {
    thread.stack_lo = row.value[4];
    thread.stack_bytes = row.value[5];
  }
  if (!row.text[6].empty()) thread.name = row.text[6];
}

void Contexts::take_node(const RowView& row) {
  if (row.value[0] < wire::kFirstNode) return;  // roots have no row
  const uint32_t index = node_index(row.value[0]);
  if (nodes[index].defined) return;  // ids keep their meaning for the life of the process image
  const uint32_t parent = node_index(row.value[1]);
  const uint32_t module = module_index(row.value[2]);
  nodes[index] = {parent, module, row.value[3], true, (row.value[4] & wire::kNodeGuessed) != 0};
}

void Contexts::take_counters(const RowView& row) {
  const uint64_t time = row.value[0];
  const bool newer = time >= counters_time_;
  for_each_counter(row, [&](uint64_t number, uint64_t value) {
    if (number >= counters.size()) return;  // of a newer writer
    if (newer) counters[number] = value;
    if (number == static_cast<uint64_t>(wire::Counter::k_rss_bytes)) rss_.emplace_back(time, value);
  });
  if (newer) counters_time_ = time;
}

void Contexts::take_row(const Generation& gen, uint64_t m, const RowView& row) {
  if (row.layout == nullptr) return;
  switch (static_cast<wire::Row>(row.tag)) {
    case wire::Row::kProcess:
      return take_process(row);
    case wire::Row::kModule:
      return take_module(row);
    case wire::Row::kThread:
      return take_thread(row);
    case wire::Row::kNode:
      return take_node(row);
    case wire::Row::kSite: {
      const uint32_t node = node_index(row.value[1]);
      TypeMeaning& meaning = types_[row.value[0]];
      meaning = {row.value[4], node, TypeMeaning::kNoSite, static_cast<uint8_t>(row.value[2]), true};
      return;
    }
    case wire::Row::kCounters:
      return take_counters(row);
    case wire::Row::kMarker:
      markers_.push_back({row.value[0], row.value[1]});
      return;
    case wire::Row::kSpanInfo: {
      SpanRows& rows = span_rows_[row.value[0]];
      rows.rows.push_back(
          {m, static_cast<wire::SpanSource>(std::min<uint64_t>(row.value[1], 255)), row.value[2] != 0, row.value[3]});
      rows.used.push_back(false);
      return;
    }
    case wire::Row::kFreeStack:
      return;  // stacks of frees are no part of a Profile
    case wire::Row::kEnd:
      end = EndRow{row.value[0], row.value[1], row.value[2], gen.number};
      return;
  }
}

Failure Contexts::begin_generation(const Generation& gen) {
  types_.clear();
  span_rows_.clear();
  markers_.clear();
  rss_.clear();
  Failure first;
  for (const auto& data : gen.experimental) {
    if (data.kind != wire::kBatchRows) continue;
    const auto fault = for_each_row(data.bytes, [&](const RowView& row) { take_row(gen, data.m, row); });
    if (!fault || first) continue;
    Error error;
    error.offset = data.offset + fault->at;
    error.generation = gen.number;
    error.message = fault->message + (data.from_tail ? " (in the tail)" : "");
    first = std::move(error);
  }
  // The type table knows sizes; it serves where no Site row was read (a trace of Go, lost rows).
  Failure types_fault = for_each_type(gen, [&](const TypeEntry& entry) {
    TypeMeaning& meaning = types_[entry.id];
    if (meaning.known) return;
    meaning.size = entry.size;
    meaning.known = true;
  });
  if (!first) first = std::move(types_fault);
  std::stable_sort(markers_.begin(), markers_.end(),
                   [](const MarkerRow& a, const MarkerRow& b) { return a.time < b.time; });
  std::stable_sort(rss_.begin(), rss_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return first;
}

SpanInfoRow Contexts::span_info(uint64_t id, uint64_t m) {
  const auto it = span_rows_.find(id);
  if (it == span_rows_.end()) return {};
  SpanRows& rows = it.value();
  while (rows.first_unused < rows.rows.size() && rows.used[rows.first_unused]) ++rows.first_unused;
  const size_t stop = std::min(rows.rows.size(), rows.first_unused + kSpanRowsTried);
  for (size_t i = rows.first_unused; i < stop; ++i) {
    if (rows.used[i] || rows.rows[i].m != m) continue;
    rows.used[i] = true;
    return rows.rows[i];
  }
  return rows.rows.back();
}

void Contexts::break_cycles() {
  enum : uint8_t { kNew, kOnPath, kDone };
  std::vector<uint8_t> state(nodes.size(), kNew);
  std::vector<uint32_t> path;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    uint32_t at = i;
    while (at >= wire::kFirstNode && state[at] == kNew) {
      state[at] = kOnPath;
      path.push_back(at);
      const uint32_t parent = nodes[at].parent;
      if (parent >= wire::kFirstNode && state[parent] == kOnPath) {
        nodes[at].parent = static_cast<uint32_t>(wire::NodeRoot::kNone);
        break;
      }
      at = parent;
    }
    for (const uint32_t node : path) state[node] = kDone;
    path.clear();
  }
}

}  // namespace traceaf::reader
