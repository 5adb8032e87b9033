// traceaf-report: chooses the verb and runs it. Exit status 0: fine, 1: the trace could not be read or is damaged,
// 2: wrong usage.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iterator>

#include "reader/cli/session.h"
#include "reader/cli/verb.h"

namespace traceaf::reader::cli {
namespace {

constexpr const Verb* kVerbs[] = {
#define TRACEAF_VERB(name) &k_##name,
#include "reader/cli/verbs.inc"
#undef TRACEAF_VERB
};

const Verb* find_verb(std::string_view name) {
  const auto at = std::find_if(std::begin(kVerbs), std::end(kVerbs), [&](const Verb* v) { return v->name == name; });
  return at == std::end(kVerbs) ? nullptr : *at;
}

std::string verb_names() {
  std::string names;
  for (const Verb* verb : kVerbs) names += (names.empty() ? "" : ", ") + std::string(verb->name);
  return names;
}

void print_help() {
  fmt::print(
      "Reads a trace of libtraceaf.so and says what was allocated, by whom, and what is still live.\n"
      "\n"
      "usage: traceaf-report [VERB] [FILE] [options]\n"
      "\n"
      "Without FILE it reads the newest *.traf in the working directory; without VERB it prints the summary.\n"
      "\n"
      "Verbs:\n");
  for (const Verb* verb : kVerbs) fmt::print("  {:<10}{}\n", verb->name, verb->help);
  fmt::print(
      "\n"
      "  -h, --help     this text; after a verb, the options of that verb\n"
      "  --version      the version\n"
      "\n"
      "Exit status: 0 fine, 1 the trace cannot be read or a part of it is damaged, 2 wrong usage.\n"
      "Sizes are powers of 1024 (1 KiB = 1024 B).\n");
}

int run_verb(const Verb& verb, std::vector<std::string> words) {
  Options options;
  CLI::App app{std::string(verb.help), "traceaf-report " + std::string(verb.name)};
  app.get_formatter()->column_width(34);
  verb.declare(app, options);
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return kOk;
  } catch (const CLI::ParseError& error) {
    complain(fmt::format("{} (see traceaf-report {} --help)", error.what(), verb.name));
    return kUsage;
  }
  return verb.run(options);
}

int run(std::vector<std::string> words) {
  if (!words.empty()) {
    if (words[0] == "-h" || words[0] == "--help" || words[0] == "help") {
      print_help();
      return kOk;
    }
    if (words[0] == "--version") {
      fmt::print("traceaf-report {}\n", TRACEAF_VERSION);
      return kOk;
    }
    if (const Verb* verb = find_verb(words[0])) {
      words.erase(words.begin());
      return run_verb(*verb, std::move(words));
    }
    std::error_code error;
    if (words.size() > 1 && words[0][0] != '-' && words[1][0] != '-' && !std::filesystem::exists(words[0], error)) {
      complain(fmt::format("there is no verb '{}'; verbs: {}", words[0], verb_names()));
      return kUsage;
    }
  }
  return run_verb(k_summary, std::move(words));
}

}  // namespace
}  // namespace traceaf::reader::cli

int main(int argc, char** argv) {
  try {
    return traceaf::reader::cli::run({argv + 1, argv + argc});
  } catch (const std::bad_alloc&) {
    traceaf::reader::cli::complain("out of memory");
  } catch (const std::exception& error) {
    traceaf::reader::cli::complain(error.what());
  }
  return traceaf::reader::cli::kInputError;
}
