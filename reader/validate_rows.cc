// Validation of experimental batches: info, types and rows (see validate_checks.h).
#include <fmt/format.h>

#include <algorithm>

#include "reader/validate_checks.h"

namespace traceaf::reader {

void RowChecker::check_experiments(const Generation& gen) {
  for (const Batch& batch : gen.batches) {
    const Place place{batch.offset, gen.number, batch.number};
    if (batch.experiment > wire::kExperimentAllocFree) {
      // Go's reader hands it on and its consumers fail.
      findings_.error("experiment", place,
                      fmt::format("expected experiment {}, found {}", wire::kExperimentAllocFree, batch.experiment));
    } else if (batch.experiment != 0 && batch.begin == batch.end) {
      findings_.error("experiment", place, "expected the kind of an experimental batch, found an empty body");
    }
  }
}

void RowChecker::check_row(const RowView& row, const Place& place, Tables& tables, Definitions& out) {
  if (row.layout == nullptr) {
    findings_.warning("row-unknown", place,
                      fmt::format("expected a row that this program knows, found tag {}", row.tag));
    return;
  }
  const size_t optional = row.tag == static_cast<uint64_t>(wire::Row::kNode) ? 1 : 0;  // flags of 0
  if (row.fields + optional < row.layout->fields) {
    findings_.warning(
        "row-short", place,
        fmt::format("expected {} fields of row {}, found {}", row.layout->fields, row.layout->name, row.fields));
  }
  const auto& v = row.value;
  switch (static_cast<wire::Row>(row.tag)) {
    case wire::Row::kProcess:
      ++tables.processes;
      out.live_exact = v[5] != 0;
      ours_ = true;
      break;
    case wire::Row::kModule:
      if (v[0] == 0) findings_.error("module-id", place, "expected a module id from 1, found 0");
      if (v[2] > v[3])
        findings_.error("module-range", place,
                        fmt::format("expected a module that ends behind its start, found {} to {}", v[2], v[3]));
      tables.modules.insert(v[0]);
      break;
    case wire::Row::kThread:
      out.threads.insert(v[0]);
      break;
    case wire::Row::kNode: {
      const NodeRow node{v[1], v[2], v[3], v[4]};
      if (v[0] < wire::kFirstNode)
        findings_.error("node-id", place, fmt::format("expected a node id from {}, found {}", wire::kFirstNode, v[0]));
      const auto [it, is_new] = known_nodes_.try_emplace(v[0], node);
      if (!is_new && it->second != node)
        findings_.error("node-changed", place, fmt::format("expected node {} as defined before, found another", v[0]));
      tables.nodes.try_emplace(v[0], node, place);
      break;
    }
    case wire::Row::kSite:
      if (!tables.sites.try_emplace(v[0], SiteRow{v[1], v[4], place}).second) {
        findings_.error("site-twice", place, fmt::format("expected one Site row for type {}, found a second", v[0]));
      }
      out.types.insert(v[0]);
      break;
    case wire::Row::kMarker:
      tables.markers.emplace_back(v[0], v[1]);
      break;
    case wire::Row::kEnd:
      ++tables.ends;
      break;
    case wire::Row::kCounters:
    case wire::Row::kSpanInfo:
    case wire::Row::kFreeStack:
      break;
  }
}

// Every id that a row uses is defined in the same generation.
void RowChecker::check_references(const Tables& tables) {
  const auto check_node = [&](uint64_t id, const char* user, const Place& place) {
    const bool root = id < wire::kFirstNode && id <= static_cast<uint64_t>(wire::NodeRoot::kUnreadable);
    if (root || tables.nodes.contains(id)) return;
    findings_.error("node-undefined", place,
                    fmt::format("expected node {} of a {} defined in this generation, found no row", id, user));
  };
  for (const auto& [id, node] : tables.nodes) {
    const auto& [row, place] = node;
    check_node(row.parent, "child node", place);
    if (row.parent >= wire::kFirstNode && row.parent == id)
      findings_.error("node-cycle", place, fmt::format("expected a parent of node {}, found itself", id));
    if (row.module != 0 && !tables.modules.contains(row.module)) {
      findings_.error("module-undefined", place,
                      fmt::format("expected module {} of a node defined in this generation, found no row", row.module));
    }
  }
  for (const auto& [type, site] : tables.sites) {
    check_node(site.node, "site", site.place);
    const auto known = tables.type_sizes.find(type);
    if (known == tables.type_sizes.end()) {
      findings_.error("site-without-type", site.place,
                      fmt::format("expected type {} of a site in the type table, found no row", type));
    } else if (known->second != site.size) {
      findings_.error(
          "site-size", site.place,
          fmt::format("expected size {} of type {} as in the type table, found {}", known->second, type, site.size));
    }
  }
}

Definitions RowChecker::generation(const Generation& gen) {
  Tables tables;
  Definitions out;
  const Place start{gen.offset, gen.number, {}};
  check_experiments(gen);
  for (const auto& data : gen.experimental) {
    if (data.kind == wire::kBatchInfo) ++tables.infos;
    if (data.kind != wire::kBatchRows) continue;
    const auto fault = for_each_row(data.bytes, [&](const RowView& row) {
      check_row(row, {data.offset + row.at, gen.number, {}}, tables, out);
    });
    if (fault) findings_.error("row", {data.offset + fault->at, gen.number, {}}, fault->message);
  }
  const Failure types = for_each_type(gen, [&](const TypeEntry& entry) {
    if (entry.id == 0) findings_.error("type-id", start, "expected a type id from 1, found 0");
    if (!tables.type_sizes.try_emplace(entry.id, entry.size).second) {
      findings_.error("type-twice", start, fmt::format("expected one row for type {}, found a second", entry.id));
    }
    out.types.insert(entry.id);
  });
  if (types) findings_.error("type-table", *types);
  if (tables.infos > 1)
    findings_.error("info-twice", start, fmt::format("expected one info batch, found {}", tables.infos));
  out.ours = ours_;
  ended_ = tables.ends != 0;
  if (ours_) {
    if (tables.infos == 0)
      findings_.error("info-missing", start,
                      fmt::format("expected an info batch in generation {}, found none", gen.number));
    if (tables.processes != 1) {
      findings_.error("process", start,
                      fmt::format("expected one Process row in generation {}, found {}", gen.number, tables.processes));
    }
    check_references(tables);
  }
  std::stable_sort(tables.markers.begin(), tables.markers.end());
  for (const auto& [time, kind] : tables.markers) {
    if (kind == static_cast<uint64_t>(wire::MarkerKind::kOn)) {
      out.resumed |= !recording_;
      recording_ = true;
    } else if (kind == static_cast<uint64_t>(wire::MarkerKind::kOff) ||
               kind == static_cast<uint64_t>(wire::MarkerKind::kStandby)) {
      recording_ = false;
    }
  }
  return out;
}

void RowChecker::finish(const Generation* last) {
  if (last == nullptr) return;
  if (!last->complete) {
    findings_.error("end-of-generation", {last->offset, last->number, {}},
                    fmt::format("expected EndOfGeneration behind generation {}, found none", last->number));
  }
  if (ours_ && !ended_) {
    findings_.warning("end-missing", {last->offset, last->number, {}},
                      "expected an End row in the last generation, found none: the program was killed or still runs");
  }
}

}  // namespace traceaf::reader
