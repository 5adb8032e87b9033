// Runs a program and keeps what it wrote and how it ended.
#pragma once

#include <sys/types.h>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace traceaf::test {

struct Ran {
  int status = 0;  // as from waitpid
  std::string out, err;

  [[nodiscard]] int code() const;    // exit status, or -1 when a signal ended it
  [[nodiscard]] int signal() const;  // signal that ended it, or 0
};

struct How {
  std::vector<std::pair<std::string, std::string>> environment;  // added
  std::string folder;                                            // working directory, empty: ours
  std::function<void(pid_t)> meanwhile;                          // called once the program's stdout had a first byte
  bool ignore_sigchld = false;                                   // start it with SIGCHLD ignored
};

Ran run(const std::vector<std::string>& command, const How& how = {});

// A folder of its own, removed with everything in it.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string path(const std::string& name = {}) const;
  // Writes a file there and returns its path.
  std::string write(const std::string& name, const std::string& text, int mode = 0644) const;

 private:
  std::string path_;
};

}  // namespace traceaf::test
