// Raw system calls: the recorder's only way to the kernel. They touch neither errno nor the PLT, are no cancellation
// points, and need no thread-local storage, so they may be used inside malloc and on the flusher's bare thread.
// Each returns the kernel's result: a value, or -errno in [-4095, -1].
#pragma once

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <cstddef>
#include <cstdint>

namespace traceaf::emitter::sys {

#if !defined(__x86_64__)
#error "traceaf records x86-64 programs only"
#endif

inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  long result = 0;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

template <typename T>
inline long word(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

inline bool failed(long result) { return result < 0 && result >= -4095; }

// Where the next mapping of ours should go: a part of the address space where the kernel puts nothing by itself. So the
// program's own mappings lie where they would without us, and none of ours gets into a hole that the program made in a
// reservation and will unmap as a whole. Only a hint: an occupied place is never taken over.
void* next_place(size_t bytes);

// Anonymous private memory, or nullptr.
inline void* map(size_t bytes) {
  const long r = call(SYS_mmap, word(next_place(bytes)), static_cast<long>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return failed(r) ? nullptr : reinterpret_cast<void*>(r);
}
inline void* map_file(int fd, size_t bytes, uint64_t offset) {
  const long r = call(SYS_mmap, word(next_place(bytes)), static_cast<long>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED,
                      fd, static_cast<long>(offset));
  return failed(r) ? nullptr : reinterpret_cast<void*>(r);
}
inline long unmap(void* at, size_t bytes) { return call(SYS_munmap, word(at), static_cast<long>(bytes)); }
inline long advise(void* at, size_t bytes, int advice) {
  return call(SYS_madvise, word(at), static_cast<long>(bytes), advice);
}

inline int open(const char* path, int flags, int mode = 0) {
  return static_cast<int>(call(SYS_openat, AT_FDCWD, word(path), flags, mode));
}
inline long close(int fd) { return call(SYS_close, fd); }
inline long read(int fd, void* to, size_t bytes) { return call(SYS_read, fd, word(to), static_cast<long>(bytes)); }
inline long write(int fd, const void* from, size_t bytes) {
  return call(SYS_write, fd, word(from), static_cast<long>(bytes));
}
inline long unlink(const char* path) { return call(SYS_unlink, word(path)); }
inline long readlink(const char* path, char* to, size_t bytes) {
  return call(SYS_readlink, word(path), word(to), static_cast<long>(bytes));
}
inline int pid() { return static_cast<int>(call(SYS_getpid)); }
inline int tid() { return static_cast<int>(call(SYS_gettid)); }

inline long futex_wait(const void* at, uint32_t expected, const timespec* timeout, bool shared) {
  return call(SYS_futex, word(at), shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, expected, word(timeout));
}
inline long futex_wake(const void* at, int waiters, bool shared) {
  return call(SYS_futex, word(at), shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, waiters);
}
inline void sleep_ns(uint64_t ns) {
  const timespec t{static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
  call(SYS_nanosleep, word(&t), 0);
}
inline void yield() { call(SYS_sched_yield); }

}  // namespace traceaf::emitter::sys
