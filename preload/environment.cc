// Changes of the environment: they are the program's own way to switch recording. The new value is read back in the
// same thread right after the call, so it is what getenv would say (setenv may not overwrite, putenv may remove).
#include <unistd.h>

#include <cstring>

#include "preload/guard.h"
#include "preload/next.h"
#include "preload/start.h"

namespace traceaf::preload {
namespace {

constexpr char kName[] = "TRACEALLOCFREE";
constexpr size_t kNameLength = sizeof(kName) - 1;

const char* value_now() {
  if (environ == nullptr) return nullptr;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, kName, kNameLength) == 0 && (*entry)[kNameLength] == '=') return *entry + kNameLength + 1;
  }
  return nullptr;
}

void changed() {
  emitter::option_changed(value_now());
  refresh_guard();
}

// `text` is the name, alone or followed by '='.
bool concerns_us(const char* text) {
  return text != nullptr && strncmp(text, kName, kNameLength) == 0 &&
         (text[kNameLength] == '\0' || text[kNameLength] == '=');
}

}  // namespace

TRACEAF_EXPORT int setenv(const char* name, const char* value, int overwrite) noexcept {
  const bool ours = acts_for_process() && concerns_us(name);
  const int result = next_setenv(name, value, overwrite);
  if (ours && result == 0) changed();
  return result;
}

TRACEAF_EXPORT int putenv(char* text) noexcept {
  const bool ours = acts_for_process() && concerns_us(text);
  const int result = next_putenv(text);
  if (ours && result == 0) changed();
  return result;
}

TRACEAF_EXPORT int unsetenv(const char* name) noexcept {
  const bool ours = acts_for_process() && concerns_us(name);
  const int result = next_unsetenv(name);
  if (ours && result == 0) changed();
  return result;
}

TRACEAF_EXPORT int clearenv() noexcept {
  const bool ours = acts_for_process();
  const int result = next_clearenv();
  if (ours && result == 0) changed();
  return result;
}

}  // namespace traceaf::preload
