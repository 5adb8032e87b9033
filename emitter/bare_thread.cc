// A kernel thread without libc (see bare_thread.h).
#include "emitter/bare_thread.h"

#include <sched.h>
#include <cerrno>

#include "emitter/region.h"
#include "emitter/sys.h"

// long traceaf_bare_clone(unsigned long flags, void* stack, int* ptid, int* ctid, void* tls)
// On the new thread: calls the function whose address lies on top of the stack, then exits the thread.
asm(R"(
  .text
  .type traceaf_bare_clone, @function
  .hidden traceaf_bare_clone
  .globl traceaf_bare_clone
traceaf_bare_clone:
  .cfi_startproc
  mov %rcx, %r10
  mov $56, %eax
  syscall
  test %rax, %rax
  jz 1f
  ret
1:
  .cfi_undefined rip
  xor %ebp, %ebp
  pop %rax
  call *%rax
  xor %edi, %edi
  mov $60, %eax
  syscall
  hlt
  .cfi_endproc
  .size traceaf_bare_clone, . - traceaf_bare_clone
)");
extern "C" long traceaf_bare_clone(unsigned long flags, void* stack, std::atomic<int>* ptid, std::atomic<int>* ctid,
                                   void* tls);

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TRACEAF_LIBC_THREAD 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRACEAF_LIBC_THREAD 1
#endif

#ifdef TRACEAF_LIBC_THREAD
// Code that a sanitizer has instrumented needs the thread's own runtime data: in such builds, which are for unit tests
// only, the flusher is a thread of libc's.
#include <pthread.h>

namespace traceaf::emitter {
namespace {

void (*g_body)() = nullptr;
constinit pthread_t g_thread = 0;

void* run_body(void*) {
  g_body();
  return nullptr;
}

}  // namespace

int BareThread::start(void (*body)()) {
  g_body = body;
  const int error = pthread_create(&g_thread, nullptr, run_body, nullptr);
  if (error == 0) tid_.store(1, std::memory_order_release);
  return -error;
}

void BareThread::join() {
  if (tid_.load(std::memory_order_acquire) == 0) return;
  pthread_join(g_thread, nullptr);
  tid_.store(0, std::memory_order_release);
}

void BareThread::forget() { tid_.store(0, std::memory_order_relaxed); }

bool BareThread::is_current() const { return running() && pthread_equal(pthread_self(), g_thread) != 0; }

}  // namespace traceaf::emitter

#else

namespace traceaf::emitter {
namespace {

constexpr size_t kStack = size_t{256} << 10;
constexpr size_t kGuard = 4096;
constexpr size_t kBehindThreadPointer = 4096;  // where libc keeps its own fields; zero, but for the self pointer

// Bytes of static thread-local storage below the thread pointer that code of ours reads.
size_t static_tls_below(const void* a_thread_local) {
  uintptr_t thread_pointer = 0;
  asm("mov %%fs:0, %0" : "=r"(thread_pointer));
  return thread_pointer - reinterpret_cast<uintptr_t>(a_thread_local);
}

constinit thread_local char t_anchor = 0;

constexpr size_t round_page(size_t n) { return (n + 4095) & ~size_t{4095}; }

}  // namespace

int BareThread::start(void (*body)()) {
  // All of this object's thread-local variables lie in one block around t_anchor; a page more covers it.
  const size_t below = round_page(static_tls_below(&t_anchor) + 4096);
  if (memory_ == nullptr) {
    memory_ = own_map(kGuard + kStack + below + kBehindThreadPointer);
    if (memory_ == nullptr) return -ENOMEM;
    sys::call(SYS_mprotect, sys::word(memory_), kGuard, PROT_NONE);
  }
  auto* stack_top = static_cast<char*>(memory_) + kGuard + kStack;
  auto* thread_pointer = stack_top + below;
  *reinterpret_cast<void**>(thread_pointer) = thread_pointer;
  *reinterpret_cast<void**>(thread_pointer + 16) = thread_pointer;  // glibc's tcb.self
  auto** top = reinterpret_cast<void**>(stack_top) - 1;  // popped, which leaves rsp aligned to 16 at the call
  *top = reinterpret_cast<void*>(body);

  uint64_t all = ~uint64_t{0};
  uint64_t before = 0;
  sys::call(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, sys::word(&all), sys::word(&before), sizeof(all));
  constexpr unsigned long kFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                                   CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  const long r = traceaf_bare_clone(kFlags, top, &tid_, &tid_, thread_pointer);
  sys::call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, sys::word(&before), 0, sizeof(before));
  return sys::failed(r) ? static_cast<int>(r) : 0;
}

void BareThread::join() {
  for (;;) {
    const int tid = tid_.load(std::memory_order_acquire);
    if (tid == 0) return;
    const timespec patience{0, 20 * 1000 * 1000};
    sys::futex_wait(&tid_, static_cast<uint32_t>(tid), &patience, true);
  }
}

void BareThread::forget() { tid_.store(0, std::memory_order_relaxed); }

bool BareThread::is_current() const {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const auto lo = reinterpret_cast<uintptr_t>(memory_);
  return memory_ != nullptr && here >= lo && here < lo + kGuard + kStack;
}

}  // namespace traceaf::emitter

#endif
