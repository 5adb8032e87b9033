// The absolute path of a loaded object, from /proc/self/maps where there is one, else from what the loader knows.
#include <link.h>
#include <sys/auxv.h>

#include <cstring>

#include "emitter/sys.h"
#include "emitter/unwind/module_record.h"

namespace traceaf::emitter::unwind {

namespace {

// Callers hold the lock of the module table, so one buffer outside the stack does.
char g_chunk[4096];
char g_file[256];

const char* proc_file(const char* proc, const char* name) {
  const size_t a = std::strlen(proc), b = std::strlen(name);
  if (a + b + 2 > sizeof(g_file)) return "";
  std::memcpy(g_file, proc, a);
  g_file[a] = '/';
  std::memcpy(g_file + a + 1, name, b + 1);
  return g_file;
}

// The kernel says so of a file that was removed or replaced; the name is what the user knows.
size_t without_deleted(const char* path, size_t length) {
  constexpr char kMark[] = " (deleted)";
  constexpr size_t kBytes = sizeof(kMark) - 1;
  return length > kBytes && std::memcmp(path + length - kBytes, kMark, kBytes) == 0 ? length - kBytes : length;
}

// Follows the text of a maps file: "lo-hi perms offset dev inode   path".
class MapsLine {
 public:
  MapsLine(uintptr_t wanted, char* out, size_t room) : wanted_(wanted), out_(out), room_(room) {}

  enum class State { kGoOn, kFound, kPassed };
  State feed(char c) {
    if (c == '\n') {
      if (inside()) return State::kFound;
      if (lo_ > wanted_) return State::kPassed;
      *this = MapsLine(wanted_, out_, room_);
      return State::kGoOn;
    }
    if (field_ < 2) {
      if (c == '-' || c == ' ') {
        ++field_;
      } else {
        uintptr_t& number = field_ == 0 ? lo_ : hi_;
        number = number << 4 | static_cast<uintptr_t>(c <= '9' ? c - '0' : c - 'a' + 10);
      }
    } else if (field_ < 6) {
      // perms, offset, dev, inode, each ended by a space; more spaces before the path
      if (c == ' ') ++field_;
    } else if (length_ > 0 || c != ' ') {
      if (inside() && length_ < room_) out_[length_] = c;
      ++length_;
    }
    return State::kGoOn;
  }
  // Bytes of the path, 0 when it did not fit.
  size_t length() const { return length_ <= room_ ? length_ : 0; }

 private:
  bool inside() const { return wanted_ >= lo_ && wanted_ < hi_; }

  uintptr_t wanted_;
  char* out_;
  size_t room_;
  uintptr_t lo_ = 0, hi_ = 0;
  unsigned field_ = 0;
  size_t length_ = 0;
};

size_t path_from_maps(const char* proc, uintptr_t start, char* out, size_t room) {
  const int fd = sys::open(proc_file(proc, "maps"), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  MapsLine line(start, out, room);
  auto state = MapsLine::State::kGoOn;
  while (state == MapsLine::State::kGoOn) {
    const long got = sys::read(fd, g_chunk, sizeof(g_chunk));
    if (got <= 0) break;
    for (long i = 0; i < got && state == MapsLine::State::kGoOn; ++i) state = line.feed(g_chunk[i]);
  }
  sys::close(fd);
  if (state != MapsLine::State::kFound || line.length() == 0 || out[0] != '/') return 0;
  return without_deleted(out, line.length());
}

size_t copy(const char* text, char* out, size_t room) {
  const size_t length = std::strlen(text);
  if (length > room) return 0;
  std::memcpy(out, text, length);
  return length;
}

// `name` below the current directory when that is where it is; else as it stands.
size_t relative_path(const char* name, char* out, size_t room) {
  const long with_nul = sys::call(SYS_getcwd, sys::word(out), static_cast<long>(room));
  const size_t length = std::strlen(name);
  if (!sys::failed(with_nul) && with_nul > 1 && static_cast<size_t>(with_nul) + length + 1 <= room && out[0] == '/') {
    size_t at = static_cast<size_t>(with_nul) - 1;
    if (at > 1) out[at++] = '/';
    std::memcpy(out + at, name, length + 1);
    if (sys::call(SYS_faccessat, AT_FDCWD, sys::word(out), 0) == 0) return at + length;
  }
  return copy(name, out, room);
}

}  // namespace

size_t find_module_path(const char* proc, uintptr_t start, const char* loader_name, char* out, size_t room) {
  if (loader_name[0] == '/') return copy(loader_name, out, room);
  // The main program too: under `ld.so ./program` /proc/self/exe names the loader.
  const size_t mapped = path_from_maps(proc, start, out, room);
  if (mapped != 0) return mapped;
  if (loader_name[0] != 0) return relative_path(loader_name, out, room);
  const long linked = sys::readlink(proc_file(proc, "exe"), out, room);
  if (!sys::failed(linked) && linked > 0 && static_cast<size_t>(linked) < room && out[0] == '/') {
    return without_deleted(out, static_cast<size_t>(linked));
  }
  // Only reads the vector that the kernel put on the stack; the entry always exists, so errno stays.
  const auto* given = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (given == nullptr) return 0;
  return given[0] == '/' ? copy(given, out, room) : relative_path(given, out, room);
}

}  // namespace traceaf::emitter::unwind
