// Calls that end or replace the process image, or that must not see a second thread. In a vfork child, and in a child
// that our fork handlers have not seen, they only forward: memory and trace there are the parent's. _exit and the exec
// family may be called from a signal handler, so nothing here takes more than the recorder's raw system calls.
#include <alloca.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>

#include "preload/lifecycle.h"
#include "preload/next.h"
#include "preload/start.h"

namespace traceaf::preload {

using wire::EndReason;

namespace {

[[noreturn]] void end_now(const Slot<void(int)>& next, int status) {
  if (acts_for_process()) emitter::process_ending(EndReason::kFastExit, status, true);
  next(status);
  __builtin_unreachable();
}

// An exec may fail, so recording goes on behind it.
void before_exec() {
  if (acts_for_process()) emitter::process_ending(EndReason::kExec, 0, false);
}

// Makes the argument vector of execl, execlp and execle; `list` is left at its null pointer.
#define TRACEAF_GATHER(argv, list, first)                                          \
  size_t argc = 0;                                                                 \
  va_start(list, first);                                                           \
  for (const char* a = first; a != nullptr; a = va_arg(list, const char*)) ++argc; \
  va_end(list);                                                                    \
  auto** argv = static_cast<char**>(alloca((argc + 1) * sizeof(char*)));           \
  va_start(list, first);                                                           \
  argv[0] = const_cast<char*>(first);                                              \
  for (size_t i = 1; i <= argc; ++i) argv[i] = va_arg(list, char*)

}  // namespace

TRACEAF_EXPORT void _exit(int status) { end_now(next__exit, status); }
TRACEAF_EXPORT void _Exit(int status) noexcept { end_now(next__Exit, status); }

// The program's own handlers run yet, and may allocate: the last of them is ours (lifecycle.cc).
TRACEAF_EXPORT void quick_exit(int status) noexcept {
  if (acts_for_process()) note_quick_exit(status);
  next_quick_exit(status);
  __builtin_unreachable();
}

TRACEAF_EXPORT int execve(const char* path, char* const* argv, char* const* envp) noexcept {
  before_exec();
  return next_execve(path, argv, envp);
}
TRACEAF_EXPORT int execv(const char* path, char* const* argv) noexcept {
  before_exec();
  return next_execv(path, argv);
}
TRACEAF_EXPORT int execvp(const char* file, char* const* argv) noexcept {
  before_exec();
  return next_execvp(file, argv);
}
TRACEAF_EXPORT int execvpe(const char* file, char* const* argv, char* const* envp) noexcept {
  before_exec();
  return next_execvpe(file, argv, envp);
}
TRACEAF_EXPORT int fexecve(int fd, char* const* argv, char* const* envp) noexcept {
  before_exec();
  return next_fexecve(fd, argv, envp);
}
TRACEAF_EXPORT int execveat(int folder, const char* path, char* const* argv, char* const* envp, int flags) noexcept {
  before_exec();
  if (next_execveat.at.load(std::memory_order_relaxed) != nullptr)
    return next_execveat(folder, path, argv, envp, flags);
  errno = ENOSYS;
  return -1;
}
TRACEAF_EXPORT int execl(const char* path, const char* first, ...) noexcept {
  va_list list;
  TRACEAF_GATHER(argv, list, first);
  va_end(list);
  before_exec();
  return next_execv(path, argv);
}
TRACEAF_EXPORT int execlp(const char* file, const char* first, ...) noexcept {
  va_list list;
  TRACEAF_GATHER(argv, list, first);
  va_end(list);
  before_exec();
  return next_execvp(file, argv);
}
TRACEAF_EXPORT int execle(const char* path, const char* first, ...) noexcept {
  va_list list;
  TRACEAF_GATHER(argv, list, first);
  auto* envp = va_arg(list, char* const*);
  va_end(list);
  before_exec();
  return next_execve(path, argv, envp);
}

TRACEAF_EXPORT int unshare(int flags) noexcept {
  const bool ours = acts_for_process();
  if (ours) emitter::flusher_park();
  const int result = next_unshare(flags);
  if (ours) emitter::flusher_unpark();
  return result;
}
TRACEAF_EXPORT int setns(int fd, int type) noexcept {
  const bool ours = acts_for_process();
  if (ours) emitter::flusher_park();
  const int result = next_setns(fd, type);
  if (ours) emitter::flusher_unpark();
  return result;
}

}  // namespace traceaf::preload
