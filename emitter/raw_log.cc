// One line on stderr from inside malloc (see raw_log.h).
#include "emitter/raw_log.h"

#include "emitter/sys.h"

namespace traceaf::emitter {

LogLine& LogLine::text(const char* s, size_t length) {
  for (size_t i = 0; i < length && used_ + 1 < kRoom; ++i) buffer_[used_++] = s[i];
  return *this;
}

LogLine& LogLine::text(const char* s) {
  size_t length = 0;
  while (s[length] != 0) ++length;
  return text(s, length);
}

LogLine& LogLine::number(int64_t value) {
  char digits[20];
  size_t n = 0;
  uint64_t rest = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  do {
    digits[sizeof(digits) - ++n] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  if (value < 0) text("-", 1);
  return text(digits + sizeof(digits) - n, n);
}

// A closed or full stderr loses the line; nothing else changes. The program's fd 2 may be a file of its own: one
// line, only in case of failure, is what users of a preloaded tool expect there.
LogLine::~LogLine() {
  buffer_[used_++] = '\n';
  sys::write(2, buffer_, used_);
}

}  // namespace traceaf::emitter
