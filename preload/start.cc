// Starting (see start.h).
#include "preload/start.h"

#include <atomic>

#include "emitter/counters.h"
#include "emitter/sys.h"
#include "preload/bootstrap.h"
#include "preload/guard.h"
#include "preload/real.h"

extern "C" void* __libc_stack_end;  // ld.so: where the kernel put argc

namespace traceaf::preload {
namespace {

namespace sys = emitter::sys;

enum State : uint32_t { kFresh, kRunning, kStarted, kInert };
constinit std::atomic<uint32_t> g_state{kFresh};  // kRunning is claimed by compare-exchange; nobody waits for its end

struct Arguments {
  int argc;
  char** argv;
  char** envp;
};

char* g_nothing[] = {nullptr};

// argc, argv..., null, envp..., null as on entry to the process. All empty where that does not hold.
Arguments arguments_of_process() {
  auto* words = static_cast<uintptr_t*>(__libc_stack_end);
  if (words == nullptr || words[0] > (uintptr_t{1} << 24)) return {0, g_nothing, g_nothing};
  auto** argv = reinterpret_cast<char**>(words + 1);
  const auto argc = static_cast<size_t>(words[0]);
  if (argv[argc] != nullptr) return {0, g_nothing, g_nothing};
  return {static_cast<int>(argc), argv, argv + argc + 1};
}

bool gate_is_open() {
  const uint32_t gate = emitter::gate();
  return gate != emitter::kGateOff && gate != emitter::kGateUninitialised;
}

Resolved resolve_undisturbed(emitter::NextAllocator* info) {
  const uint64_t all = ~uint64_t{0};
  uint64_t before = 0;
  const bool blocked =
      !sys::failed(sys::call(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, sys::word(&all), sys::word(&before), 8));
  const Resolved resolved = resolve(info);
  if (blocked) sys::call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, sys::word(&before), 0, 8);
  return resolved;
}

}  // namespace

bool start() {
  uint32_t state = kFresh;
  if (!g_state.compare_exchange_strong(state, kRunning, std::memory_order_acq_rel)) {
    if (state != kStarted) return false;
    return gate_is_open();
  }
  emitter::NextAllocator info{};
  if (resolve_undisturbed(&info) != Resolved::kYes) {
    // Another namespace (the program runs on untraced there), or no allocator behind us: calls go to the slots.
    g_state.store(kInert, std::memory_order_release);
    return false;
  }
  emitter::next_allocator(info);
  const Arguments a = arguments_of_process();
  emitter::process_init(a.argc, a.argv, a.envp);
  if (bootstrap::served() != 0) emitter::count(wire::Counter::k_bootstrap_blocks, bootstrap::served());
  refresh_guard();
  g_state.store(kStarted, std::memory_order_release);
  return gate_is_open();
}

bool acts_for_process() {
  if (g_state.load(std::memory_order_acquire) == kFresh) start();
  return g_state.load(std::memory_order_acquire) == kStarted && emitter::own_process();
}

}  // namespace traceaf::preload
