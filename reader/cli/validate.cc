// traceaf-report validate.
#include "reader/validate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "reader/cli/session.h"
#include "reader/views/units.h"

namespace traceaf::reader::cli {
namespace {

constexpr size_t kLimit = 20;

void declare(CLI::App& app, Options& options) {
  declare_file(app, options);
  declare_output(app, options);
  declare_ignored(app, options);
  app.add_option("--limit", options.limit,
                 fmt::format("most findings of one rule that are shown, 0 shows all [{}]", kLimit))
      ->option_text("N")
      ->check(CLI::NonNegativeNumber);
}

std::string severity(Severity s) { return s == Severity::kError ? "error" : "warning"; }

views::Value place(const std::optional<uint64_t>& n) { return n.has_value() ? views::id(*n) : views::none(); }

views::Document document_of(const Report& report, const std::string& file) {
  using views::count_of;
  views::Document document;
  document.parts.emplace_back(views::Fields{"",
                                            "",
                                            {{"file", "", views::text(file)},
                                             {"ok", "", views::flag(report.ok())},
                                             {"errors", "", views::count(report.errors())},
                                             {"warnings", "", views::count(report.warnings())},
                                             {"generations", "", views::count(report.generations)},
                                             {"batches", "", views::count(report.batches)},
                                             {"events", "", views::count(report.events)},
                                             {"allocfree_events", "", views::count(report.allocfree_events)}}});
  views::Table findings;
  findings.key = "findings";
  findings.columns = {{"severity", ""}, {"rule", ""},       {"message", ""},
                      {"offset", ""},   {"generation", ""}, {"batch", ""}};
  views::Lines lines;
  for (const Finding& f : report.findings) {
    findings.rows.push_back({{views::text(severity(f.severity)), views::text(f.rule), views::text(f.message),
                              place(f.offset), place(f.generation), place(f.batch)},
                             {}});
    lines.lines.push_back({"", f.text(), f.severity == Severity::kError ? views::Tone::kWarning : views::Tone::kPlain});
  }
  views::Fields counts{"rules_broken", "", {}};
  for (const RuleCount& rule : report.counts) {
    counts.fields.push_back({rule.rule, "", views::count(rule.count)});
    const auto shown = static_cast<uint64_t>(std::count_if(report.findings.begin(), report.findings.end(),
                                                           [&](const Finding& f) { return f.rule == rule.rule; }));
    if (rule.count > shown) {
      lines.lines.push_back({"", fmt::format("... {} more of [{}]", views::format_count(rule.count - shown), rule.rule),
                             views::Tone::kQuiet});
    }
  }
  lines.lines.push_back(
      {"",
       fmt::format("{}: {}, {}; {}, {}, {}, {} of them AllocFree", report.ok() ? "valid" : "not valid",
                   count_of(report.errors(), "error"), count_of(report.warnings(), "warning"),
                   count_of(report.generations, "generation"), count_of(report.batches, "batch", "batches"),
                   count_of(report.events, "event"), views::format_count(report.allocfree_events)),
       report.ok() ? views::Tone::kTitle : views::Tone::kWarning});
  document.parts.emplace_back(std::move(lines));
  document.parts.emplace_back(std::move(findings));
  document.parts.emplace_back(std::move(counts));
  return document;
}

int run(Options& options) {
  if (!choose_file(options)) return kInputError;
  ValidateOptions validation;
  validation.limit = options.limit.value_or(kLimit);
  if (validation.limit == 0) validation.limit = ~size_t{0};
  const auto report = validate(options.file, validation);
  if (!report.ok()) {
    complain(report.error().text());
    return kInputError;
  }
  if (!print(options, document_of(report.value(), options.file))) return kInputError;
  return report.value().ok() ? kOk : kInputError;
}

}  // namespace

const Verb k_validate{"validate", "check every rule of the format; exit status 1 when one is broken", declare, run};

}  // namespace traceaf::reader::cli
