// The debug guard (see guard.h).
#include "preload/guard.h"

#include <dlfcn.h>
#include <signal.h>

#include "emitter/raw_log.h"
#include "emitter/recorder.h"
#include "emitter/sys.h"
#include "emitter/unwind/unwind.h"
#include "preload/next.h"

namespace traceaf::preload {

// The section of TRACEAF_PASSES_ON, under the linker's names for its bounds.
extern __attribute__((visibility("hidden"))) const char wrappers_begin[] asm("__start_taf_wrappers");
extern __attribute__((visibility("hidden"))) const char wrappers_end[] asm("__stop_taf_wrappers");

constinit std::atomic<bool> g_guard{false};

namespace {

// `ra`: behind the call, which may be the last of its function.
bool passes_on(uintptr_t ra) {
  return ra > reinterpret_cast<uintptr_t>(wrappers_begin) && ra <= reinterpret_cast<uintptr_t>(wrappers_end);
}

bool is_ours(uintptr_t pc) {
  dl_find_object here;
  dl_find_object there;
  return _dl_find_object(reinterpret_cast<void*>(&is_ours), &here) == 0 &&
         _dl_find_object(reinterpret_cast<void*>(pc), &there) == 0 && here.dlfo_link_map == there.dlfo_link_map;
}

}  // namespace

void refresh_guard() { g_guard.store(emitter::guard_enabled(), std::memory_order_relaxed); }

void check_guard(FramePointer frame) {
  if (!emitter::inside_recorder()) return;
  constexpr uint32_t kDepth = 24;
  emitter::unwind::Step steps[kDepth];
  wire::NodeRoot end{};
  const uint32_t n = emitter::unwind::walk(emitter::unwind::start_of(frame), {0, 0}, steps, kDepth, &end);
  for (uint32_t i = 0; i < n && (steps[i].flags & emitter::unwind::kInterrupted) == 0; ++i) {
    if (!is_ours(steps[i].ra) || passes_on(steps[i].ra)) continue;
    emitter::LogLine().text("guard: the recorder itself allocated");
    emitter::sys::call(SYS_tgkill, emitter::sys::pid(), emitter::sys::tid(), SIGABRT);
    __builtin_trap();
  }
}

}  // namespace traceaf::preload
