// Libraries that take each other's place in the address space, with frames of another size.
#include <dlfcn.h>
#include <link.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tests/e2e/stacks/stacks.h"

namespace stacks {
namespace {

using PluginCall = void (*)(void (*)());

struct Plugin {
  void* handle;
  PluginCall call;
  uintptr_t base;
};

// Beside the program.
Plugin load(const char* name) {
  const Quiet quiet;
  char path[4096];
  const ssize_t bytes = readlink("/proc/self/exe", path, sizeof(path) - 100);
  must(bytes > 0, "readlink");
  path[bytes] = 0;
  strcpy(strrchr(path, '/') + 1, name);
  Plugin plugin{dlopen(path, RTLD_NOW), nullptr, 0};
  must(plugin.handle != nullptr, "dlopen");
  plugin.call = reinterpret_cast<PluginCall>(dlsym(plugin.handle, "plugin_call"));
  link_map* map = nullptr;
  dlinfo(plugin.handle, RTLD_DI_LINKMAP, &map);
  plugin.base = map->l_addr;
  return plugin;
}

void unload(const Plugin& plugin) {
  const Quiet quiet;
  dlclose(plugin.handle);
}

// The plugins are called on a stack of its own, so that what the dynamic linker does in between leaves the words below
// alone. The padding makes up for the difference between the frames of the two.
ucontext_t g_linker, g_caller;
const Plugin* g_plugin;
bool g_large;
void caller() {
  for (;;) {
    padded_call(reinterpret_cast<void*>(g_plugin->call), reinterpret_cast<void*>(churn), g_large ? 0 : 4120 - 24,
                g_large ? 1 : 0);
    swapcontext(&g_caller, &g_linker);
  }
}

}  // namespace

uint64_t reloaded_libraries() {
  unsigned replaced = 0;
  uintptr_t last = 0;
  static char room[256 << 10];
  must(getcontext(&g_caller) == 0, "getcontext");
  g_caller.uc_stack.ss_sp = room;
  g_caller.uc_stack.ss_size = sizeof(room);
  makecontext(&g_caller, caller, 0);
  for (unsigned i = 0; i < 60; ++i) {
    const Plugin plugin = load(i % 2 == 0 ? "plugin_24.so" : "plugin_4120.so");
    replaced += plugin.base == last ? 1 : 0;
    last = plugin.base;
    plugin.call(churn);
    g_plugin = &plugin;
    g_large = i % 2 != 0;
    swapcontext(&g_linker, &g_caller);
    if (i % 4 == 0) plugin.call([] { unusual_frames(churn, 2); });
    unload(plugin);
  }
  must(replaced > 10, "libraries took each other's place");
  return 1;
}

}  // namespace stacks
