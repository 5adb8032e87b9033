// View: what the trace itself is: process, generations, modules with their symbols, events, counters.
#include <fmt/format.h>

#include "emitter/wire/events.h"
#include "reader/views/escape.h"
#include "reader/views/units.h"
#include "reader/views/views.h"
#include "reader/views/wording.h"

namespace traceaf::reader::views {
namespace {

Fields process(const Profile& p) {
  const Process& process = p.process;
  return {"",
          "Process",
          {{"command", "command", text(command_line(process))},
           {"argv", "", list(process.command)},
           {"exe", "program", text(process.exe)},
           {"pid", "pid", id(process.pid)},
           {"ppid", "parent", id(process.ppid)},
           {"parent_pid", "forked from traced", process.parent_pid == 0 ? none() : id(process.parent_pid)},
           {"image", "image of this pid", id(process.image)},
           {"host", "host", text(process.host)},
           {"", "started", text(format_wall_time(process.start_wall_ns))},
           {"start_unix_ns", "", ns(process.start_wall_ns)},
           {"traceaf_version", "traceaf", text(process.version)},
           {"options", "options", text(process.options)},
           {"live_exact", "live set exact at start", flag(process.live_exact)},
           {"min_address", "base of ids", address(p.min_addr)},
           {"page_size_bytes", "page size", bytes(p.page_size)},
           {"clock_frequency_hz", "clock ticks a second", count(p.clock_freq)},
           {"complete", "complete", flag(p.ending.complete)},
           {"end", "", text(end_reason_name(p.ending))},
           {"", "ends", text(how_it_ends(p.ending))},
           {"note", p.ending.note.empty() ? "" : "missing", text(p.ending.note)},
           {"damaged", "damaged", flag(p.ending.damaged)},
           {"from_tail", "last part from .tail", flag(p.ending.from_tail)},
           {"lost_bytes", "lost bytes", bytes(p.ending.lost_bytes)},
           {"duration_ns", "duration", ns(p.duration_ns)}}};
}

Table generations(const Profile& profile, size_t limit) {
  Table table;
  table.key = "generations";
  table.title = count_of(profile.generations.size(), "generation");
  table.columns = {{"number", "number"},   {"first_ns", "from"}, {"last_ns", "to"},       {"events", "events"},
                   {"batches", "batches"}, {"bytes", "bytes"},   {"complete", "complete"}};
  for (const GenerationInfo& g : profile.generations) {
    if (limit != 0 && table.rows.size() == limit) break;
    table.rows.push_back({{id(g.number), ns(g.first_ns), ns(g.last_ns), count(g.events), count(g.batches),
                           bytes(g.bytes), flag(g.complete)},
                          {}});
  }
  table.more = left_out(table.rows.size(), profile.generations.size());
  return table;
}

Table modules(const Profile& profile, const Names& names) {
  std::vector<const ModuleCoverage*> coverage(profile.modules.size(), nullptr);
  for (const ModuleCoverage& c : names.coverage) {
    if (c.module < coverage.size()) coverage[c.module] = &c;
  }
  Table table;
  table.key = "modules";
  table.title = "Modules";
  table.nothing = "none";
  table.columns = {{"path", "path"},           {"symbols", "symbols"},
                   {"addresses", "addresses"}, {"unresolved", "no name"},
                   {"build_id", "build id"},   {"debug_file", ""},
                   {"start_address", ""},      {"end_address", ""},
                   {"bias_address", ""},       {"id", ""},
                   {"unloaded", ""},           {"note", "note"}};
  for (size_t i = 1; i < profile.modules.size(); ++i) {
    const Module& m = profile.modules[i];
    const ModuleCoverage* c = coverage[i];
    table.rows.push_back(
        {{text(m.path), text(c == nullptr ? "not looked up" : symbol_state_name(c->state)),
          count(c == nullptr ? 0 : c->addresses), count(c == nullptr ? 0 : c->unresolved), text(m.build_id),
          text(c == nullptr ? "" : c->debug_file), address(m.start), address(m.end), address(m.bias), id(m.id),
          flag((m.flags & wire::kModuleUnloaded) != 0), text(c == nullptr ? "" : c->note)},
         {}});
  }
  return table;
}

Table events(const Profile& profile) {
  Table table;
  table.key = "event_types";
  table.title = fmt::format("{} of the AllocFree experiment", count_of(profile.events, "event"));
  table.columns = {{"name", "event"}, {"number", "number"}, {"count", "count"}};
  for (const auto& spec : wire::kEvents) {
    const uint64_t n = profile.events_by_type[spec.number];
    if (n != 0) table.rows.push_back({{text(std::string(spec.name)), id(spec.number), count(n)}, {}});
  }
  return table;
}

Table counters(const Profile& profile) {
  Table table;
  table.key = "counters";
  table.title = "Counters of the recorder";
  table.columns = {{"name", "counter"}, {"value", "value"}, {"loss", "loss"}, {"meaning", "meaning"}};
  for (const auto& spec : wire::kCounters) {
    table.rows.push_back({{text(std::string(spec.name)), count(profile.counters[spec.number]),
                           flag(counts_loss(spec.number)), text(std::string(spec.meaning))},
                          {}});
  }
  return table;
}

}  // namespace

Document info_view(const Profile& profile, const Names& names, const ViewOptions& options) {
  Document document;
  document.parts.emplace_back(process(profile));
  document.parts.emplace_back(generations(profile, options.limit));
  document.parts.emplace_back(modules(profile, names));
  document.parts.emplace_back(events(profile));
  document.parts.emplace_back(counters(profile));
  return document;
}

}  // namespace traceaf::reader::views
