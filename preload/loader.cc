// dlclose: facts about code that is going away are dropped before and after. dlopen is not hooked (the loader would
// take us for the caller, and so the wrong RUNPATH); new objects are noticed at their first call.
#include <dlfcn.h>

#include "preload/next.h"
#include "preload/real.h"
#include "preload/start.h"

namespace traceaf::preload {

TRACEAF_EXPORT int dlclose(void* handle) noexcept {
  const bool ours = acts_for_process();
  if (ours) emitter::modules_changing();
  const int result = next_dlclose(handle);
  recheck_operators();
  if (ours) emitter::modules_changed();
  return result;
}

}  // namespace traceaf::preload
