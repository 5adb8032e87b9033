// What verbs do around a view (see session.h).
#include "reader/cli/session.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "reader/read.h"
#include "reader/symbols/symbolizer.h"
#include "reader/views/escape.h"
#include "reader/views/render.h"
#include "reader/views/units.h"

namespace traceaf::reader::cli {
namespace {

namespace fs = std::filesystem;

bool wants_colour(const Options& options) {
  if (options.colour != "auto") return options.colour == "always";
  const char* no_color = getenv("NO_COLOR");
  const char* term = getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == 0) &&
         (term == nullptr || strcmp(term, "dumb") != 0);
}

size_t terminal_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

}  // namespace

void complain(std::string_view message) {
  static const auto log = [] {
    auto logger = spdlog::stderr_logger_st("traceaf-report");
    logger->set_pattern("%n: %v");
    return logger;
  }();
  log->error("{}", views::terminal_safe(message));
}

bool choose_file(Options& options) {
  if (!options.file.empty()) return true;
  std::error_code error;
  fs::file_time_type newest{};
  for (const auto& entry : fs::directory_iterator(".", error)) {
    if (entry.path().extension() != ".traf" || !entry.is_regular_file(error)) continue;
    const auto time = entry.last_write_time(error);
    const std::string name = entry.path().filename().string();
    if (error || (!options.file.empty() && (time < newest || (time == newest && name < options.file)))) continue;
    newest = time;
    options.file = name;
  }
  if (options.file.empty()) {
    complain("no FILE given and no *.traf in the working directory (record one: traceaf record COMMAND)");
    return false;
  }
  complain("reading the newest trace here, " + options.file);
  return true;
}

bool load(Options& options, Profile& profile) {
  ReadOptions read;
  Progress progress;
  read.progress = [&](uint64_t done, uint64_t all) { progress.update(done, all); };
  auto result = read_profile(options.file, read);
  if (!result.ok()) {
    complain(result.error().text());
    return false;
  }
  profile = std::move(result.value());
  if (profile.generations.empty() && profile.ending.damaged) {
    complain(profile.ending.note);
    return false;
  }
  return true;
}

views::Names names_of(const Options& options, const Profile& profile) {
  if (options.no_symbols) return views::resolve_names(profile, {});
  SymbolOptions symbols;
  symbols.debug_dirs.insert(symbols.debug_dirs.begin(), options.debug_dirs.begin(), options.debug_dirs.end());
  symbols.sysroot = options.sysroot;
  Symbolizer symbolizer(profile.modules, std::move(symbols));
  views::Names names =
      views::resolve_names(profile, [&](const auto& addresses) { return symbolizer.resolve(addresses); });
  names.coverage = symbolizer.coverage();
  return names;
}

views::ViewOptions view_options(const Options& options, size_t limit_in_text) {
  views::ViewOptions view;
  view.file = options.file;
  for (const auto& spec : views::kMetrics) {
    if (spec.name == options.metric) view.metric = spec.metric;
  }
  view.limit = options.limit.value_or(options.json() ? 0 : limit_in_text);
  view.invert = options.invert;
  view.threshold = options.threshold;
  view.full = options.full || options.json();
  return view;
}

bool put(std::string_view data) {
  const bool written = fwrite(data.data(), 1, data.size(), stdout) == data.size();
  if (!written && errno != EPIPE) complain(fmt::format("cannot write the output: {}", strerror(errno)));
  return written;
}

bool finish() {
  const bool written = fflush(stdout) == 0;
  if (!written && errno != EPIPE) complain(fmt::format("cannot write the output: {}", strerror(errno)));
  return written;
}

bool print(const Options& options, const views::Document& document) {
  bool written = true;
  const views::Out out = [&](std::string_view data) { written = written && put(data); };
  if (options.json()) {
    views::render_json(document, out);
  } else {
    views::render_text(document, {wants_colour(options), terminal_width(), options.full}, out);
  }
  return written && finish();
}

int judge(const Options& options, const Profile& profile) {
  const Ending& ending = profile.ending;
  if (!ending.complete) {
    complain(ending.note.empty() ? options.file + ": the end of the trace is missing" : ending.note);
  }
  return ending.damaged ? kInputError : kOk;
}

int run_view(Options& options, size_t limit_in_text, bool names, const View& view) {
  Profile profile;
  if (!choose_file(options) || !load(options, profile)) return kInputError;
  const views::Names resolved = names ? names_of(options, profile) : views::Names{};
  const int status = judge(options, profile);
  if (!print(options, view(profile, resolved, view_options(options, limit_in_text)))) return kInputError;
  return status;
}

namespace {
uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000 + static_cast<uint64_t>(t.tv_nsec);
}
}  // namespace

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1), start_ns_(now_ns()) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::update(uint64_t done, uint64_t all) {
  if (!terminal_) return;
  const uint64_t now = now_ns();
  if (now - start_ns_ < 1000000000 || now - last_ns_ < 100000000) return;
  last_ns_ = now;
  shown_ = true;
  const std::string of =
      all == 0 ? "" : fmt::format(" of {} ({})", views::format_bytes(all), views::format_share(done, all));
  fmt::print(stderr, "\r\x1b[Kreading {}{}", views::format_bytes(done), of);
}

}  // namespace traceaf::reader::cli
