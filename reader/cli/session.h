// What verbs do around a view: find and read the trace with progress, resolve names, print, judge the exit status.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "reader/cli/verb.h"
#include "reader/profile.h"
#include "reader/views/document.h"
#include "reader/views/names.h"
#include "reader/views/views.h"

namespace traceaf::reader::cli {

// "traceaf-report: MESSAGE" on stderr, control characters escaped.
void complain(std::string_view message);

// Options.file, or the newest *.traf in the working directory, which is then named on stderr. False: none, complained.
bool choose_file(Options& options);

// The trace of options.file. False: it could not be read at all, complained.
bool load(Options& options, Profile& profile);
// Names of all frames in `profile`, or raw ones with --no-symbols.
views::Names names_of(const Options& options, const Profile& profile);
views::ViewOptions view_options(const Options& options, size_t limit_in_text);

// Writes all of `data` to stdout. False: the output is gone; said on stderr unless it is a closed pipe.
bool put(std::string_view data);
bool finish();
// Prints the document in the format asked for.
bool print(const Options& options, const views::Document& document);

// kInputError when bytes of the trace were damaged or cut off (kOk for one that is merely unfinished); says on stderr
// what is missing either way.
int judge(const Options& options, const Profile& profile);

// A whole verb that is one view with names.
using View = std::function<views::Document(const Profile&, const views::Names&, const views::ViewOptions&)>;
int run_view(Options& options, size_t limit_in_text, bool names, const View& view);

// Bytes read of all, on stderr, once a terminal has waited a second. Erased at the end.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void update(uint64_t done, uint64_t all);

 private:
  bool terminal_;
  bool shown_ = false;
  uint64_t start_ns_;
  uint64_t last_ns_ = 0;
};

}  // namespace traceaf::reader::cli
