// The debug guard (see guard.h).
#include "preload/guard.h"

#include <dlfcn.h>
#include <signal.h>

#include "emitter/raw_log.h"
#include "emitter/recorder.h"
#include "emitter/sys.h"
#include "emitter/unwind/unwind.h"

namespace traceaf::preload {

constinit std::atomic<bool> g_guard{false};

namespace {

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
    if (!is_ours(steps[i].ra)) continue;
    emitter::LogLine().text("guard: the recorder itself allocated");
    emitter::sys::call(SYS_tgkill, emitter::sys::pid(), emitter::sys::tid(), SIGABRT);
    __builtin_trap();
  }
}

}  // namespace traceaf::preload
