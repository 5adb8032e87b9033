// Our constructor and destructor, the fork handlers, and the handlers that run last at exit and quick_exit.
//
// exit: the dynamic linker runs the destructors of all libraries inside one exit handler, in an order that is not ours.
// Ours registers one more exit handler; libc starts its list again when a handler has registered another, so that one
// runs behind the last destructor of the last library, and everything freed in them is recorded.
#include "preload/lifecycle.h"

#include <pthread.h>
#include <stdlib.h>

#include <atomic>

#include "preload/packets.h"
#include "preload/start.h"

namespace traceaf::preload {
namespace {

constinit std::atomic<int> g_quick_status{0};

void final_exit(int status, void*) {
  if (acts_for_process()) emitter::process_ending(wire::EndReason::kExit, status, true);
}

void final_quick_exit() {
  if (!acts_for_process()) return;
  emitter::process_ending(wire::EndReason::kFastExit, g_quick_status.load(std::memory_order_relaxed), true);
}

void in_child() {
  packets_after_fork();
  emitter::fork_child();
}

__attribute__((constructor)) void begin() {
  start();
  if (!acts_for_process()) return;
  pthread_atfork(&emitter::fork_prepare, &emitter::fork_parent, &in_child);
  at_quick_exit(&final_quick_exit);
}

__attribute__((destructor)) void end() {
  if (acts_for_process()) on_exit(&final_exit, nullptr);
}

}  // namespace

void note_quick_exit(int status) { g_quick_status.store(status, std::memory_order_relaxed); }

}  // namespace traceaf::preload
