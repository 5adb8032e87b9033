// View: the whole run on one screen.
#include <fmt/format.h>

#include <algorithm>

#include "emitter/wire/events.h"
#include "reader/views/escape.h"
#include "reader/views/site_table.h"
#include "reader/views/units.h"
#include "reader/views/views.h"
#include "reader/views/wording.h"

namespace traceaf::reader::views {
namespace {

constexpr size_t kScreen = 45;    // lines of text at most
constexpr size_t kSites = 5;      // sites of each list in JSON
constexpr size_t kLeakDepth = 3;  // frames of a leak's stack
constexpr size_t kLossLines = 8;
constexpr size_t kModules = 3;            // named of those that lack debug info
constexpr unsigned kShortLivedBits = 20;  // lifetimes below 2^20 ns count as short

uint64_t short_lived(const Profile& profile) {
  uint64_t blocks = 0;
  for (unsigned i = 0; i <= kShortLivedBits; ++i) blocks += profile.lifetimes[i].count;
  return blocks;
}

uint64_t counter(const Profile& profile, wire::Counter c) { return profile.counters[static_cast<uint8_t>(c)]; }

uint64_t program_threads(const Profile& profile) {
  return static_cast<uint64_t>(std::count_if(profile.threads.begin(), profile.threads.end(),
                                             [](const Thread& t) { return (t.flags & wire::kThreadFlusher) == 0; }));
}

uint64_t span_bytes(const Profile& profile) {
  uint64_t sum = 0;
  for (const SpanStats& span : profile.spans) sum += span.bytes;
  return sum;
}

std::string next_command(const Profile& profile, const ViewOptions& options) {
  std::vector<std::string> words = {"traceaf-report"};
  if (profile.ending.damaged) {
    words.emplace_back("validate");
  } else if (profile.ending.has_end && profile.live.bytes > profile.peak.bytes / 10) {
    words.emplace_back("leaks");
  } else if (profile.temporary.count > profile.allocated.count / 2) {
    words.insert(words.end(), {"top", "--metric=temporary"});
  } else {
    words.insert(words.end(), {"tree", "--metric=peak"});
  }
  words.push_back(options.file);
  return shell_quoted(words);
}

Fields data(const Profile& p, const Names& names, const ViewOptions& options) {
  Fields fields;
  const auto put = [&](const char* key, Value value) { fields.fields.push_back({key, "", std::move(value)}); };
  put("command", text(command_line(p.process)));
  put("argv", list(p.process.command));
  put("exe", text(p.process.exe));
  put("pid", id(p.process.pid));
  put("ppid", id(p.process.ppid));
  put("parent_pid", id(p.process.parent_pid));
  put("image", id(p.process.image));
  put("host", text(p.process.host));
  put("traceaf_version", text(p.process.version));
  put("options", text(p.process.options));
  put("start_unix_ns", ns(p.process.start_wall_ns));
  put("complete", flag(p.ending.complete));
  put("end", text(end_reason_name(p.ending)));
  put("damaged", flag(p.ending.damaged));
  put("from_tail", flag(p.ending.from_tail));
  put("lost_bytes", bytes(p.ending.lost_bytes));
  put("note", text(p.ending.note));
  put("duration_ns", ns(p.duration_ns));
  put("generations", count(p.generations.size()));
  put("events", count(p.events));
  put("allocations", count(p.allocated.count));
  put("frees", count(p.freed.count));
  put("allocated_bytes", bytes(p.allocated.bytes));
  put("freed_bytes", bytes(p.freed.bytes));
  put("moves", count(p.moves));
  put("temporary", count(p.temporary.count));
  put("temporary_bytes", bytes(p.temporary.bytes));
  put("short_lived", count(short_lived(p)));
  put("short_lived_bound_ns", ns(uint64_t{1} << kShortLivedBits));
  put("peak_bytes", bytes(p.peak.bytes));
  put("peak_blocks", count(p.peak.count));
  put("peak_time_ns", ns(p.peak_time_ns));
  put("rss_peak_bytes", bytes(counter(p, wire::Counter::k_rss_peak_bytes)));
  put("live_blocks", count(p.live.count));
  put("live_bytes", bytes(p.live.bytes));
  put("live_exact", flag(p.process.live_exact));
  put("inherited_blocks", count(p.inherited.count));
  put("inherited_bytes", bytes(p.inherited.bytes));
  put("threads", count(program_threads(p)));
  put("spans", count(p.spans.size()));
  put("spans_bytes", bytes(span_bytes(p)));
  put("spans_peak", count(p.spans_peak.count));
  put("spans_peak_bytes", bytes(p.spans_peak.bytes));
  put("sites", count(p.sites.size()));
  put("lost_events", count(counter(p, wire::Counter::k_lost_events)));
  put("truncated_stacks", count(counter(p, wire::Counter::k_truncated_stacks)));
  put("unknown_frees", count(p.unknown_frees));
  put("frees_before", count(p.frees_before));
  put("double_births", count(p.double_births));
  put("unknown_types", count(p.unknown_types));
  put("symbols", flag(names.symbols));
  put("frames", count(names.addresses));
  put("unresolved_frames", count(names.unresolved));
  put("modules_without_lines", list(modules_without_lines(p, names)));
  put("next", text(next_command(p, options)));
  return fields;
}

Fields events_by_type(const Profile& profile) {
  Fields fields{"events_by_type", "", {}};
  for (const auto& spec : wire::kEvents) {
    const uint64_t n = profile.events_by_type[spec.number];
    if (n != 0) fields.fields.push_back({std::string(spec.name), "", count(n)});
  }
  return fields;
}

Fields counters(const Profile& profile) {
  Fields fields{"counters", "", {}};
  for (const auto& spec : wire::kCounters) {
    fields.fields.push_back({std::string(spec.name), "", count(profile.counters[spec.number])});
  }
  return fields;
}

Lines headlines(const Profile& p, const Names& names) {
  Lines lines;
  const auto put = [&](const char* label, std::string said, Tone tone = Tone::kPlain) {
    lines.lines.push_back({label, std::move(said), tone});
  };
  put("Ends", how_it_ends(p.ending), p.ending.complete ? Tone::kPlain : Tone::kWarning);
  if (p.ending.damaged && !p.ending.note.empty()) put("", p.ending.note, Tone::kWarning);
  put("Duration",
      fmt::format("{} in {}", format_duration(p.duration_ns), count_of(p.generations.size(), "generation")));
  put("Events", fmt::format("{}: {}, {}{}", format_count(p.events), count_of(p.allocated.count, "allocation"),
                            count_of(p.freed.count, "free"),
                            p.moves == 0 ? "" : fmt::format(" ({} of each by realloc)", format_count(p.moves))));
  put("Allocated", fmt::format("{}, {} a block on average", format_bytes(p.allocated.bytes),
                               format_bytes(p.allocated.count == 0 ? 0 : p.allocated.bytes / p.allocated.count)));
  put("Short-lived",
      fmt::format("{} of all blocks were freed within {}; {} before their thread allocated again",
                  format_share(short_lived(p), p.allocated.count + p.inherited.count),
                  format_duration(uint64_t{1} << kShortLivedBits), format_share(p.temporary.count, p.allocated.count)));
  if (p.inherited.count != 0) {
    put("Inherited", fmt::format("{} in {} existed when recording began", format_bytes(p.inherited.bytes),
                                 count_of(p.inherited.count, "block")));
  } else if (!p.process.live_exact) {
    put("Inherited", "blocks born before recording began are unknown", Tone::kWarning);
  }
  put("Threads", format_count(program_threads(p)));
  put("Spans", fmt::format("{} of {} at the end, at most {} at once", format_count(p.spans.size()),
                           format_bytes(span_bytes(p)), format_count(p.spans_peak.count)));
  put("Symbols", coverage_text(names));
  auto lacking = modules_without_lines(p, names);
  const size_t unnamed = lacking.size() > kModules ? lacking.size() - kModules : 0;
  lacking.resize(lacking.size() - unnamed);
  if (!lacking.empty()) {
    put("", fmt::format("without line numbers: {}{}", fmt::join(lacking, ", "),
                        unnamed == 0 ? "" : fmt::format(" and {} more", unnamed)));
  }
  const auto lost = losses(p);
  if (lost.empty()) put("Losses", "none");
  const size_t named = lost.size() > kLossLines ? kLossLines - 1 : lost.size();
  for (size_t i = 0; i < named; ++i) {
    put(i == 0 ? "Losses" : "", fmt::format("{} = {}: {}", lost[i].name, format_count(lost[i].value), lost[i].meaning),
        Tone::kWarning);
  }
  std::string rest;
  for (size_t i = named; i < lost.size(); ++i) {
    rest += fmt::format("{}{} = {}", rest.empty() ? "" : ", ", lost[i].name, format_count(lost[i].value));
  }
  if (!rest.empty()) put("", rest, Tone::kWarning);
  return lines;
}

}  // namespace

Document summary_view(const Profile& profile, const Names& names, const ViewOptions& options) {
  const StackTree tree(profile, names);
  const auto merged = merge_sites(profile, tree);
  const auto at_peak = ranked(merge_places(ranked(merged, tree, Metric::kPeak), tree), tree, Metric::kPeak);
  const auto at_end = ranked(merged, tree, Metric::kLive);

  Document document;
  Lines head;
  head.lines.push_back({"", command_line(profile.process), Tone::kTitle});
  head.lines.push_back({"",
                        fmt::format("pid {} on {}, {}, {}", profile.process.pid, profile.process.host,
                                    format_wall_time(profile.process.start_wall_ns), options.file),
                        Tone::kQuiet});
  head.lines.push_back({"", "", Tone::kPlain});
  document.parts.emplace_back(std::move(head));
  document.parts.emplace_back(data(profile, names, options));
  Lines lines = headlines(profile, names);

  const bool marks =
      std::any_of(names.frames.begin(), names.frames.end(), [](const Frame& frame) { return frame.guessed; });
  // Head, headlines, two titles with a gap and a "more" line each, what a mark means, a gap and the next command.
  const size_t fixed = 3 + lines.lines.size() + 6 + (marks ? 1 : 0) + 2;
  const size_t room = kScreen > fixed ? kScreen - fixed : 0;
  const size_t peak_rows = std::clamp<size_t>(room / 3, 1, kSites);
  const size_t leak_rows = std::clamp<size_t>((room - std::min(room, peak_rows)) / (kLeakDepth + 1), 1, kSites);
  document.parts.emplace_back(std::move(lines));

  const size_t limit = options.limit == 0 ? kSites : options.limit;
  Table peak = metric_table(at_peak, tree, Metric::kPeak, profile.peak, limit);
  peak.key = "peak_sites";
  peak.title = fmt::format("Peak: {} in {} at {}", format_bytes(profile.peak.bytes),
                           count_of(profile.peak.count, "block"), format_duration(profile.peak_time_ns));
  peak.depth = 1;
  Table leaks = metric_table(at_end, tree, Metric::kLive, profile.live, limit);
  leaks.key = "leak_sites";
  leaks.title = fmt::format("{}: {} in {}", live_heading(profile.ending), format_bytes(profile.live.bytes),
                            count_of(profile.live.count, "block"));
  leaks.depth = kLeakDepth;
  const auto fit = [&](Table& table, size_t rows, size_t all, const char* verb) {
    if (options.limit == 0) table.text_rows = rows;
    const size_t shown = std::min(table.text_rows == 0 ? table.rows.size() : table.text_rows, table.rows.size());
    table.more = shown == all ? "" : fmt::format("... {} more ({})", format_count(all - shown), verb);
    table.indent = 2;
    for (Column& column : table.columns) column.label = column.label.empty() ? "" : " ";
  };
  fit(peak, peak_rows, at_peak.size(), "traceaf-report top");
  fit(leaks, leak_rows, at_end.size(), "traceaf-report leaks");
  document.parts.emplace_back(std::move(peak));
  document.parts.emplace_back(std::move(leaks));

  document.parts.emplace_back(events_by_type(profile));
  document.parts.emplace_back(counters(profile));
  Lines next;
  next.lines.push_back({"", "", Tone::kPlain});
  next.lines.push_back({"Next", next_command(profile, options), Tone::kPlain});
  document.parts.emplace_back(std::move(next));
  return document;
}

}  // namespace traceaf::reader::views
