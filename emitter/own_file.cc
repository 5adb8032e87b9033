// A file of ours inside somebody else's program (see own_file.h).
#include "emitter/own_file.h"

#include <sys/resource.h>
#include <cerrno>
#include <climits>
#include <cstring>

#include "emitter/sys.h"

namespace traceaf::emitter {
namespace {

// Descriptors are moved up here, out of the way of programs that count on low numbers.
constexpr long kHighDescriptor = 1000;

int move_high(int fd) {
  rlimit limit{};
  long least = kHighDescriptor;
  if (!sys::failed(sys::call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, sys::word(&limit))) &&
      limit.rlim_cur <= static_cast<rlim_t>(least) + 8)
    least = limit.rlim_cur > 12 ? static_cast<long>(limit.rlim_cur) - 8 : 3;
  const long high = sys::call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, least);
  if (sys::failed(high)) return fd;  // none free up there: the low number serves
  sys::close(fd);
  return static_cast<int>(high);
}

bool exceeds_size_limit(uint64_t end) {
  rlimit limit{};
  if (sys::failed(sys::call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, sys::word(&limit)))) return false;
  return limit.rlim_cur != RLIM_INFINITY && end > limit.rlim_cur;
}

// What tells one file from another, also when an inode number is used again: of `name` in the folder `fd`, or of `fd`
// itself when the name is empty.
bool identify(int fd, OwnFile::Identity* identity, const char* name = "") {
  struct statx info {};
  constexpr unsigned kMask = STATX_INO | STATX_BTIME;
  const long r =
      sys::call(SYS_statx, fd, sys::word(name), AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, kMask, sys::word(&info));
  if (sys::failed(r)) return false;
  identity->device = uint64_t{info.stx_dev_major} << 32 | info.stx_dev_minor;
  identity->inode = info.stx_ino;
  // File systems without birth times leave it zero.
  identity->born_ns = static_cast<uint64_t>(info.stx_btime.tv_sec) * 1000000000 + info.stx_btime.tv_nsec;
  return true;
}

bool same(const OwnFile::Identity& a, const OwnFile::Identity& b) {
  return a.device == b.device && a.inode == b.inode && a.born_ns == b.born_ns;
}

}  // namespace

int OwnFile::create(const char* path) {
  if (strlen(path) >= kPathRoom) return -ENAMETOOLONG;
  const int fd = sys::open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return fd;
  if (!identify(fd, &identity_)) {
    sys::close(fd);
    sys::unlink(path);
    return -EIO;
  }
  memcpy(path_, path, strlen(path) + 1);
  fd_ = move_high(fd);
  open_folder();
  size_ = 0;
  return 0;
}

// The folder is held open too: after a chroot the path leads nowhere, and the tail still wants to be removed.
void OwnFile::open_folder() {
  char folder[kPathRoom];
  size_t length = strlen(path_);
  while (length > 1 && path_[length - 1] != '/') --length;
  memcpy(folder, path_, length);
  folder[length] = 0;
  name_ = path_ + length;
  folder_ = sys::open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0) return;
  folder_ = move_high(folder_);
  if (!identify(folder_, &folder_identity_)) folder_ = -1;
}

int OwnFile::folder() const {
  Identity found;
  if (folder_ >= 0 && identify(folder_, &found) && same(found, folder_identity_)) return folder_;
  return -EBADF;
}

int OwnFile::reopen() {
  fd_ = -1;
  const int in = folder();
  const int fd = static_cast<int>(sys::call(SYS_openat, in >= 0 ? in : AT_FDCWD, sys::word(in >= 0 ? name_ : path_),
                                            O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (fd < 0) return -EBADF;
  Identity found;
  if (!identify(fd, &found) || !same(found, identity_)) {
    sys::close(fd);
    return -EBADF;
  }
  fd_ = move_high(fd);
  return fd_;
}

int OwnFile::fd() {
  if (path_[0] == 0) return -EBADF;
  Identity found;
  if (fd_ >= 0 && identify(fd_, &found) && same(found, identity_)) return fd_;
  return reopen();  // the number was closed, and is perhaps a file of the program now: it is left alone
}

int OwnFile::append(const void* from, size_t bytes) {
  const int out = fd();
  if (out < 0) return out;
  if (exceeds_size_limit(size_ + bytes)) return -EFBIG;
  const auto* at = static_cast<const char*>(from);
  size_t left = bytes;
  uint64_t offset = size_;
  while (left > 0) {
    const long r = sys::call(SYS_pwrite64, out, sys::word(at), static_cast<long>(left), static_cast<long>(offset));
    if (r == -EINTR || r == -EAGAIN) continue;
    if (sys::failed(r) || r == 0) {
      sys::call(SYS_ftruncate, out, static_cast<long>(size_));
      return r == 0 ? -EIO : static_cast<int>(r);
    }
    at += r;
    offset += static_cast<uint64_t>(r);
    left -= static_cast<size_t>(r);
  }
  size_ += bytes;
  return 0;
}

int OwnFile::reserve(uint64_t offset, size_t bytes) {
  const int file = fd();
  if (file < 0) return file;
  if (exceeds_size_limit(offset + bytes)) return -EFBIG;
  long r = 0;
  do {
    r = sys::call(SYS_fallocate, file, 0, static_cast<long>(offset), static_cast<long>(bytes));
  } while (r == -EINTR);
  if (r != -EOPNOTSUPP && r != -ENOSYS) return sys::failed(r) ? static_cast<int>(r) : 0;
  // A file system without fallocate: real zeros do the same.
  static constexpr char kZeros[4096] = {};
  for (size_t done = 0; done < bytes;) {
    const size_t part = bytes - done < sizeof(kZeros) ? bytes - done : sizeof(kZeros);
    r = sys::call(SYS_pwrite64, file, sys::word(kZeros), static_cast<long>(part), static_cast<long>(offset + done));
    if (r == -EINTR) continue;
    if (sys::failed(r)) return static_cast<int>(r);
    done += static_cast<size_t>(r);
  }
  return 0;
}

void OwnFile::close() {
  if (fd_ >= 0 && fd() >= 0) sys::close(fd_);
  if (folder() >= 0) sys::close(folder_);
  fd_ = -1;
  folder_ = -1;
}

void OwnFile::unlink() {
  if (path_[0] == 0) return;
  const int in = folder();
  const char* name = in >= 0 ? name_ : path_;
  Identity found;
  const int from = in >= 0 ? in : AT_FDCWD;
  // Somebody may have put another file in its place: that one stays.
  if (identify(from, &found, name) && same(found, identity_)) sys::call(SYS_unlinkat, from, sys::word(name), 0);
}

void OwnFile::forget() {
  close();
  path_[0] = 0;
}

namespace {

// Appends to a fixed buffer; `ok` turns false when something did not fit.
struct Name {
  char* out;
  size_t room;
  size_t size = 0;
  bool ok = true;
  void add(const char* s, size_t n) {
    if (size + n + 1 > room) {
      ok = false;
      return;
    }
    memcpy(out + size, s, n);
    size += n;
  }
  // A part that must not bring a slash or an odd byte into the name.
  void add_safe(const char* s, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      const char c = s[i];
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                         c == '-' || c == '_' || c == '+' || c == ':';
      add(plain ? &c : "_", 1);
    }
  }
  void add_number(uint64_t value) {
    char digits[20];
    size_t n = 0;
    do {
      digits[sizeof(digits) - ++n] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    add(digits + sizeof(digits) - n, n);
  }
};

void add_program(Name& name) {
  char path[512];
  long n = sys::readlink("/proc/self/exe", path, sizeof(path));
  if (sys::failed(n) || n == 0) {
    name.add("program", 7);  // no /proc
    return;
  }
  long start = n;
  while (start > 0 && path[start - 1] != '/') --start;
  name.add_safe(path + start, static_cast<size_t>(n - start));
}

void add_host(Name& name) {
  struct {
    char system[65], node[65], release[65], version[65], machine[65], domain[65];
  } info{};
  sys::call(SYS_uname, sys::word(&info));
  name.add_safe(info.node, strnlen(info.node, sizeof(info.node)));
}

}  // namespace

bool expand_name(const char* pattern, unsigned attempt, uint64_t wall_ns, char* out, size_t room) {
  Name name{out, room};
  if (pattern[0] != '/') {
    const long n = sys::call(SYS_getcwd, sys::word(out), static_cast<long>(room));
    if (sys::failed(n) || n < 2 || out[0] != '/') return false;
    name.size = static_cast<size_t>(n) - 1;
    if (name.size > 1) name.add("/", 1);
  }
  const size_t length = strlen(pattern);
  bool numbered = attempt == 0;
  for (const char* p = pattern; *p != 0; ++p) numbered = numbered || (p[0] == '%' && p[1] == 'n');
  const bool has_suffix = length >= 5 && strcmp(pattern + length - 5, ".traf") == 0;
  const size_t stem = has_suffix ? length - 5 : length;
  for (size_t i = 0; i < stem; ++i) {
    if (pattern[i] != '%' || i + 1 == stem) {
      name.add(pattern + i, 1);
      continue;
    }
    switch (pattern[++i]) {
      case 'e':
        add_program(name);
        break;
      case 'p':
        name.add_number(static_cast<uint64_t>(sys::pid()));
        break;
      case 'n':
        name.add_number(attempt);
        break;
      case 'h':
        add_host(name);
        break;
      case 't':
        name.add_number(wall_ns / 1000000000);
        break;
      case '%':
        name.add("%", 1);
        break;
      default:
        name.add(pattern + i - 1, 2);
        break;
    }
  }
  if (!numbered) {
    name.add(".", 1);
    name.add_number(attempt);
  }
  if (has_suffix) name.add(".traf", 5);
  if (!name.ok) return false;
  out[name.size] = 0;
  return true;
}

}  // namespace traceaf::emitter
