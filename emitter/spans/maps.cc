// Reading the address space from /proc and by harmless system calls (see maps.h).
#include "emitter/spans/maps.h"

#include <cerrno>

#include "emitter/sys.h"

namespace traceaf::emitter::spans {

namespace {

// thread-self first: /proc/self is empty once the main thread has ended while others run on.
int open_proc(const char* thread_self, const char* self) {
  const int fd = sys::open(thread_self, O_RDONLY | O_CLOEXEC);
  return fd >= 0 ? fd : sys::open(self, O_RDONLY | O_CLOEXEC);
}

long read_some(int fd, char* to, size_t bytes) {
  for (;;) {
    const long got = sys::read(fd, to, bytes);
    if (got != -EINTR) return got;
  }
}

}  // namespace

MapsReader::MapsReader(char* buffer, size_t bytes)
    : buffer_(buffer), room_(bytes), fd_(open_proc("/proc/thread-self/maps", "/proc/self/maps")) {}

MapsReader::~MapsReader() {
  if (owned_ && fd_ >= 0) sys::close(fd_);
}

int MapsReader::get() {
  if (next_ == used_) {
    const long got = fd_ < 0 ? -1 : read_some(fd_, buffer_, room_);
    if (got <= 0) {
      at_end_ = got == 0;
      return -1;
    }
    used_ = static_cast<size_t>(got);
    next_ = 0;
  }
  return static_cast<unsigned char>(buffer_[next_++]);
}

bool MapsReader::number(char stop, uintptr_t* value) {
  *value = 0;
  bool any = false;
  for (;;) {
    const int c = get();
    if (c == stop && any) return true;
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) {
      malformed_ = any || c >= 0;
      return false;
    }
    *value = *value << 4 | static_cast<uintptr_t>(digit);
    any = true;
  }
}

bool MapsReader::next(Mapping* mapping) {
  if (malformed_ || !number('-', &mapping->start)) return false;
  if (!number(' ', &mapping->end)) {
    malformed_ = true;
    return false;
  }
  get();  // r
  mapping->writable = get() == 'w';
  for (int c = get(); c != '\n'; c = get()) {
    if (c < 0) {
      malformed_ = true;
      return false;
    }
  }
  ++lines_;
  return true;
}

Found find_mapping(uintptr_t at, char* buffer, size_t bytes, Mapping* mapping) {
  MapsReader maps(buffer, bytes);
  if (!maps.ok()) return Found::kNoProc;
  while (maps.next(mapping)) {
    if (at < mapping->end) return at >= mapping->start ? Found::kYes : Found::kNo;
  }
  return Found::kNo;
}

uintptr_t break_start(char* buffer, size_t bytes) {
  const int fd = open_proc("/proc/thread-self/stat", "/proc/self/stat");
  if (fd < 0) return 0;
  size_t used = 0;
  while (used < bytes) {
    const long got = read_some(fd, buffer + used, bytes - used);
    if (got <= 0) break;
    used += static_cast<size_t>(got);
  }
  sys::close(fd);
  // Field 2 is the command in parentheses and may hold anything; the fields behind its last ')' are numbers.
  size_t at = used;
  while (at > 0 && buffer[at - 1] != ')') --at;
  unsigned field = 2;
  uintptr_t value = 0;
  for (; at < used && field <= 47; ++at) {
    if (buffer[at] == ' ') {
      ++field;
    } else if (field == 47 && buffer[at] >= '0' && buffer[at] <= '9') {
      value = value * 10 + static_cast<uintptr_t>(buffer[at] - '0');
    }
  }
  return value;
}

uintptr_t break_now() { return static_cast<uintptr_t>(sys::call(SYS_brk, 0)); }

bool readable(uintptr_t at) {
  // The kernel copies the new mask in before it looks at `how`: EFAULT when it cannot, EINVAL otherwise.
  constexpr long kNoSuchHow = 99;
  return sys::call(SYS_rt_sigprocmask, kNoSuchHow, static_cast<long>(at), 0, 8) == -EINVAL;
}

}  // namespace traceaf::emitter::spans
