// Short English for the errno values that our files and mappings can meet (strerror may allocate and translates).
#pragma once

#include <cerrno>

namespace traceaf::emitter {

// `error` may be -errno or errno.
inline const char* error_text(int error) {
  switch (error < 0 ? -error : error) {
    case EACCES:
      return "permission denied";
    case EPERM:
      return "operation not permitted";
    case ENOENT:
      return "no such directory";
    case ENOTDIR:
      return "not a directory";
    case EISDIR:
      return "is a directory";
    case EEXIST:
      return "every name tried exists already";
    case ELOOP:
      return "is a symbolic link";
    case ENAMETOOLONG:
      return "name too long, or no working directory";
    case ENOSPC:
      return "no space left on device";
    case EDQUOT:
      return "disk quota exceeded";
    case EFBIG:
      return "file size limit reached";
    case EROFS:
      return "read-only file system";
    case EIO:
      return "input/output error";
    case EMFILE:
    case ENFILE:
      return "too many open files";
    case ENOMEM:
      return "out of memory";
    case EBADF:
      return "the program closed the file and its name leads elsewhere";
    default:
      return "error";
  }
}

}  // namespace traceaf::emitter
