// traceaf-report raw: the trace as text without loss, and back.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "reader/cli/session.h"
#include "reader/text.h"

namespace traceaf::reader::cli {
namespace {

void declare(CLI::App& app, Options& options) {
  declare_file(app, options);
  app.add_flag("--assemble", options.assemble,
               "the other way: FILE is such a text, or - for standard input; writes a trace");
  app.add_option("-o,--output", options.output, "write here instead of to standard output; never over an existing file")
      ->option_text("FILE");
}

// Standard output, or a new file.
class Output {
 public:
  explicit Output(const std::string& path) {
    if (path.empty()) return;
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    file_ = fd < 0 ? nullptr : fdopen(fd, "w");
    if (file_ == nullptr) complain(fmt::format("{}: {}", path, strerror(errno)));
  }
  ~Output() {
    if (file_ != nullptr && file_ != stdout) fclose(file_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  [[nodiscard]] bool good() const { return file_ != nullptr; }
  bool write(const void* data, size_t size) {
    if (!broken_ && fwrite(data, 1, size, file_) != size) fail();
    return !broken_;
  }
  bool finish() {
    if (!broken_ && fflush(file_) != 0) fail();
    return !broken_;
  }

 private:
  void fail() {
    broken_ = true;
    if (errno != EPIPE) complain(fmt::format("cannot write the output: {}", strerror(errno)));
  }
  FILE* file_ = stdout;
  bool broken_ = false;
};

int to_text(const Options& options) {
  Output output(options.output);
  if (!output.good()) return kInputError;
  const Failure failure =
      file_to_text(options.file, [&](std::string_view text) { return output.write(text.data(), text.size()); });
  const bool written = output.finish();
  if (failure.has_value()) complain(failure->text());
  return failure.has_value() || !written ? kInputError : kOk;
}

int to_trace(const Options& options) {
  std::string text;
  if (options.file == "-") {
    char buffer[65536];
    for (size_t n = 0; (n = fread(buffer, 1, sizeof buffer, stdin)) != 0;) text.append(buffer, n);
  } else {
    std::error_code error;
    if (!std::filesystem::is_regular_file(options.file, error)) {
      complain(options.file + ": " + (error ? error.message() : "not a regular file"));
      return kInputError;
    }
    std::ifstream in(options.file, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in), {});
    if (!in.good() && !in.eof()) {
      complain(options.file + ": cannot be read");
      return kInputError;
    }
  }
  const auto trace = text_to_bytes(text, options.file);
  if (!trace.ok()) {
    complain(trace.error().text());
    return kInputError;
  }
  if (options.output.empty() && isatty(STDOUT_FILENO) == 1) {
    complain("a trace is no text: give -o FILE or redirect the output");
    return kUsage;
  }
  Output output(options.output);
  if (!output.good()) return kInputError;
  return output.write(trace.value().data(), trace.value().size()) && output.finish() ? kOk : kInputError;
}

int run(Options& options) {
  if (options.assemble) {
    if (options.file.empty()) {
      complain("raw --assemble needs a FILE, or - for standard input");
      return kUsage;
    }
    return to_trace(options);
  }
  return choose_file(options) ? to_text(options) : static_cast<int>(kInputError);
}

}  // namespace

const Verb k_raw{"raw", "every event and row as text, and back (--assemble)", declare, run};

}  // namespace traceaf::reader::cli
