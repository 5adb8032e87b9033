// One line on stderr from inside malloc: fixed buffer, one write, no allocation. Only for what the user must know.
#pragma once

#include <cstddef>
#include <cstdint>

namespace traceaf::emitter {

// Collects text on the stack and writes "traceaf: TEXT\n" when destroyed. Text beyond the buffer is cut.
class LogLine {
 public:
  LogLine() { text("traceaf: "); }
  ~LogLine();
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;
  LogLine& text(const char* s);
  LogLine& text(const char* s, size_t length);
  LogLine& number(int64_t value);

 private:
  static constexpr size_t kRoom = 512;
  char buffer_[kRoom];
  size_t used_ = 0;
};

}  // namespace traceaf::emitter
