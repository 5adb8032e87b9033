// The command line of `traceaf record` (see record_options.h).
#include "reader/launcher/record_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "reader/launcher/say.h"

namespace traceaf::launcher {
namespace {

struct Settings {
  std::map<std::string, std::string> by_name;  // what the command line gave
  std::vector<std::string> pairs;              // --option key=value
  bool standby = false;
  bool quiet = false;
};

std::string flag_of(const OptionRow& row) {
  std::string flag = "--" + std::string(row.name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

const OptionRow* find_row(std::string_view name) {
  for (const OptionRow& row : kOptionRows) {
    if (row.name == name && !row.values.empty()) return &row;
  }
  return nullptr;
}

// Why `value` cannot be given to option `row`, empty when it can. Ranges are the recorder's to check.
std::string objection(const OptionRow& row, const std::string& value) {
  if (value.empty()) return "is empty";
  if (value.find(',') != std::string::npos) return "has a comma, which separates the options of TRACEALLOCFREE";
  const bool words = row.values.find('|') != std::string_view::npos;
  if (words && fmt::format("|{}|", row.values).find("|" + value + "|") == std::string::npos) {
    return fmt::format("is none of {}", row.values);
  }
  if (row.values == "N" && value.find_first_not_of("0123456789") != std::string::npos) return "is no number";
  return {};
}

void declare(CLI::App& app, Settings& settings) {
  app.footer(
      "The command's exit status or signal is passed on; 125: traceaf itself failed, 126: the command cannot be\n"
      "executed, 127: it was not found. Programs that cannot be traced are run untraced, after a sentence that says "
      "why.");
  for (const OptionRow& row : kOptionRows) {
    if (row.name == "standby") {
      app.add_flag("--standby", settings.standby, std::string(row.help));
    } else if (!row.values.empty()) {
      const std::string names = row.name == "out" ? "-o,--out" : flag_of(row);
      app.add_option_function<std::string>(
             names, [&settings, &row](const std::string& v) { settings.by_name[std::string(row.name)] = v; },
             fmt::format("{} [{}]", row.help, row.standard))
          ->option_text(std::string(row.values));
    }
  }
  app.add_option("--option", settings.pairs, "any option as in TRACEALLOCFREE; may be given again")
      ->option_text("NAME=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("-q,--quiet", settings.quiet, "say nothing at the end");
}

bool takes_value(const std::string& word) {
  if (word == "-o" || word == "--out" || word == "--option") return true;
  return std::any_of(std::begin(kOptionRows), std::end(kOptionRows),
                     [&](const OptionRow& row) { return !row.values.empty() && flag_of(row) == word; });
}

// First word of the command: behind "--", or the first that is neither an option nor the value of one.
size_t command_start(const std::vector<std::string>& words, size_t* options_end) {
  size_t i = 0;
  while (i < words.size()) {
    *options_end = i;
    if (words[i] == "--") return i + 1;
    if (words[i].empty() || words[i][0] != '-') return i;
    i += takes_value(words[i]) ? 2 : 1;
  }
  *options_end = words.size();
  return words.size();
}

// The out= of a TRACEALLOCFREE text, which the right-most one decides.
std::string out_of(const std::string& setting, std::string otherwise) {
  size_t at = 0;
  while (at <= setting.size()) {
    const size_t end = std::min(setting.find(',', at), setting.size());
    if (setting.compare(at, 4, "out=") == 0) otherwise = setting.substr(at + 4, end - at - 4);
    at = end + 1;
  }
  return otherwise;
}

// The pairs of --option join by_name. False: one is wrong, and was complained about.
bool check(Settings& settings) {
  for (const std::string& pair : settings.pairs) {
    const size_t equals = pair.find('=');
    const std::string name = pair.substr(0, equals);
    if (equals == std::string::npos || find_row(name) == nullptr) {
      std::string names;
      for (const OptionRow& row : kOptionRows) {
        if (!row.values.empty()) names += (names.empty() ? "" : ", ") + std::string(row.name);
      }
      say(fmt::format("--option {}: expected NAME=VALUE with NAME one of {}", pair, names));
      return false;
    }
    settings.by_name[name] = pair.substr(equals + 1);
  }
  for (const auto& [name, value] : settings.by_name) {
    const std::string wrong = objection(*find_row(name), value);
    if (wrong.empty()) continue;
    say(fmt::format("the value '{}' of {} {}", value, name, wrong));
    return false;
  }
  return true;
}

}  // namespace

RecordLine parse_record(const std::vector<std::string>& words, const std::string& inherited) {
  RecordLine line;
  Settings settings;
  CLI::App app{"Runs a command with every allocation recorded.", "traceaf record"};
  app.get_formatter()->column_width(34);
  declare(app, settings);
  size_t options_end = 0;
  const size_t start = command_start(words, &options_end);
  std::vector<std::string> options(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(options_end));
  std::reverse(options.begin(), options.end());  // as CLI11 wants them
  try {
    app.parse(options);
  } catch (const CLI::CallForHelp&) {
    std::string help = app.help();
    const std::string usage = "traceaf record [OPTIONS]";
    if (const size_t at = help.find(usage); at != std::string::npos)
      help.insert(at + usage.size(), " [--] COMMAND [ARGS]");
    fmt::print("{}", help);
    line.exit = kOk;
    return line;
  } catch (const CLI::ParseError& error) {
    say(fmt::format("{} (see traceaf record --help)", error.what()));
    line.exit = kOwnFailure;
    return line;
  }
  if (!check(settings)) {
    line.exit = kOwnFailure;
    return line;
  }
  if (start >= words.size()) {
    say("no command to run (usage: traceaf record [options] -- COMMAND [ARGS])");
    line.exit = kOwnFailure;
    return line;
  }
  line.options.command.assign(words.begin() + static_cast<std::ptrdiff_t>(start), words.end());
  line.options.quiet = settings.quiet;
  line.options.setting = settings.standby ? "standby" : "1";
  for (const auto& [name, value] : settings.by_name) line.options.setting += fmt::format(",{}={}", name, value);
  line.options.out = out_of(line.options.setting, out_of(inherited, std::string(find_row("out")->standard)));
  return line;
}

}  // namespace traceaf::launcher
