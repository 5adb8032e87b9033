// Reads of stack words that can never fault (see memory.h).
#include "emitter/unwind/memory.h"

#include "emitter/sys.h"

namespace traceaf::emitter::unwind {

namespace {
constexpr unsigned kPageShift = 12;
constexpr long kKernelSigsetBytes = 8;
constexpr long kNoSuchHow = 0x7fffffff;
constexpr long kErrnoInvalid = -22;
}  // namespace

// The kernel copies the set in before it looks at `how`: EFAULT for memory that cannot be read, EINVAL otherwise. The
// call is in every seccomp filter that lets libc work; where a filter forbids it the answer is "not readable"
// (the stack is cut and marked) unless the filter kills the process for it.
bool probe_readable(uintptr_t at) {
  const long result = sys::call(SYS_rt_sigprocmask, kNoSuchHow, static_cast<long>(at), 0, kKernelSigsetBytes);
  return result == kErrnoInvalid;
}

bool Memory::page_readable(uintptr_t page) {
  if (page == 0) return false;
  for (const uintptr_t known : pages_) {
    if (known == page) return true;
  }
  if (!probe_readable(page << kPageShift)) return false;
  pages_[next_++ % kPages] = page;
  return true;
}

bool Memory::read_probed(uintptr_t at, uintptr_t* value) {
  const uintptr_t last = at + kWord - 1;
  if (last < at || !page_readable(at >> kPageShift)) return false;
  if (last >> kPageShift != at >> kPageShift && !page_readable(last >> kPageShift)) return false;
  *value = load(at);
  return true;
}

}  // namespace traceaf::emitter::unwind
