// A file of ours inside a program that may close, reuse or run out of descriptors, change its folder or its root, or
// limit file sizes: made once under a name of its own, checked before each use, reopened by its absolute path when
// lost.
#pragma once

#include <cstddef>
#include <cstdint>

namespace traceaf::emitter {

class OwnFile {
 public:
  static constexpr size_t kPathRoom = 1200;
  struct Identity {
    uint64_t device = 0, inode = 0, born_ns = 0;
  };

  // Creates `path` (mode 0600, never following a link, never an existing file). Returns 0 or -errno.
  int create(const char* path);
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  [[nodiscard]] const char* path() const { return path_; }
  // Appends everything, or returns -errno and leaves the file at the size it had before: EFBIG instead of a SIGXFSZ
  // that the program would see, EBADF when the descriptor is gone and the path leads elsewhere.
  int append(const void* from, size_t bytes);
  // Room for [offset, offset + bytes) that a later store through a mapping can't find missing (no SIGBUS). 0 or -errno.
  int reserve(uint64_t offset, size_t bytes);
  // The descriptor when it is still ours (reopened if need be), else -EBADF.
  int fd();
  void close();
  void unlink();
  // In a forked child: closes the descriptor and forgets the file, which is the parent's.
  void forget();

 private:
  int reopen();
  void open_folder();
  // The folder's descriptor when it is still ours, else -EBADF.
  [[nodiscard]] int folder() const;
  char path_[kPathRoom] = "";
  int fd_ = -1;
  Identity identity_;
  int folder_ = -1;
  Identity folder_identity_;
  const char* name_ = nullptr;  // in path_
  uint64_t size_ = 0;
};

// The name of the next trace: `pattern` with %e %p %n %h %t %% replaced and made absolute, in out[0, room). `attempt` 0
// is the plain name; for n > 0 a number is put before ".traf" (or at the end), or used as %n when the pattern has it.
// False when it does not fit.
bool expand_name(const char* pattern, unsigned attempt, uint64_t wall_ns, char* out, size_t room);

}  // namespace traceaf::emitter
