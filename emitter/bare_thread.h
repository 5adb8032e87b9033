// A kernel thread that libc does not know: made by clone with a stack and a dummy thread block of ours. It must not
// call libc beyond mem* and str*, and ends by returning. libc goes on believing what it believed about the number of
// threads.
#pragma once

#include <atomic>
#include <cstdint>

namespace traceaf::emitter {

class BareThread {
 public:
  // Runs body() on a new thread with all signals blocked. 0 or -errno. At most one at a time.
  int start(void (*body)());
  // Waits until it has ended.
  void join();
  [[nodiscard]] bool running() const { return tid_.load(std::memory_order_acquire) != 0; }
  // In a forked child: the thread did not come along.
  void forget();
  // True on the thread itself (compares stacks).
  [[nodiscard]] bool is_current() const;

 private:
  std::atomic<int> tid_{0};  // set by the kernel at the start, cleared (and woken) by it at the end
  void* memory_ = nullptr;
};

}  // namespace traceaf::emitter
