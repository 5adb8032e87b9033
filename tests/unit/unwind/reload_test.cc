// Libraries that take the place of others: no rule and no id of the old one is used for the new one.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <atomic>
#include <thread>

#include "emitter/modules.h"
#include "emitter/unwind/rule_cache.h"
#include "tests/unit/unwind/oracle.h"

namespace traceaf::test {
namespace {

using wire::NodeRoot;
using PluginCall = void (*)(void (*)());

struct Plugin {
  explicit Plugin(const char* path) : handle(dlopen(path, RTLD_NOW)) {
    if (handle == nullptr) return;
    call = reinterpret_cast<PluginCall>(dlsym(handle, "plugin_call"));
    link_map* map = nullptr;
    dlinfo(handle, RTLD_DI_LINKMAP, &map);
    base = map->l_addr;
  }
  void* handle;
  PluginCall call = nullptr;
  uintptr_t base = 0;
};

void unload(const Plugin& plugin) {
  emitter::modules_unload_begin();
  dlclose(plugin.handle);
  emitter::modules_unload_end();
}

thread_local Stack t_stack;
void capture() { t_stack = walk_from(emitter::unwind::start_of(__builtin_frame_address(0)), stack_bounds(), 64); }

// Old return addresses further down the stack could make a wrong walk look right.
__attribute__((noinline)) void scrub() {
  volatile char room[16 << 10];
  for (volatile char& byte : room) byte = 0;
}

thread_local uintptr_t t_outer;
__attribute__((noinline)) void call_plugin(PluginCall call) {
  scrub();
  t_outer = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  call(capture);
  asm volatile("");
}

// The stack goes through the plugin, call_plugin and its caller.
bool stack_is_right(const Plugin& plugin) {
  const auto begin = reinterpret_cast<uintptr_t>(plugin.call);
  return t_stack.end == NodeRoot::kComplete && t_stack.frames.size() > 3 && t_stack.frames[0].ra > begin &&
         t_stack.frames[0].ra < begin + 32 && t_stack.frames[2].ra == t_outer;
}

// Loads the other library until it lies where the first one was; false when the loader never puts it there.
bool load_at(const char* path, uintptr_t base, Plugin* plugin) {
  for (int i = 0; i < 20; ++i) {
    *plugin = Plugin(path);
    if (plugin->base == base) return true;
    unload(*plugin);
  }
  return false;
}

TEST(Reload, AnotherLibraryAtTheSameAddressHasItsOwnRulesAndId) {
  const Plugin small(TRACEAF_PLUGIN_SMALL);
  ASSERT_NE(small.call, nullptr) << dlerror();
  call_plugin(small.call);
  ASSERT_TRUE(stack_is_right(small));
  const uint32_t old_id = t_stack.frames[0].module;
  const uintptr_t old_ra = t_stack.frames[0].ra;
  EXPECT_STREQ(emitter::module_by_id(old_id)->path, TRACEAF_PLUGIN_SMALL);
  unload(small);
  EXPECT_NE(emitter::module_by_id(old_id)->flags & wire::kModuleUnloaded, 0u);

  Plugin large(nullptr);
  ASSERT_TRUE(load_at(TRACEAF_PLUGIN_LARGE, small.base, &large));
  call_plugin(large.call);
  EXPECT_EQ(t_stack.frames[0].ra, old_ra);
  EXPECT_TRUE(stack_is_right(large));
  const uint32_t new_id = t_stack.frames[0].module;
  EXPECT_NE(new_id, old_id);
  EXPECT_STREQ(emitter::module_by_id(new_id)->path, TRACEAF_PLUGIN_LARGE);
  EXPECT_NE(emitter::module_by_id(old_id)->flags & wire::kModuleUnloaded, 0u);
  EXPECT_EQ(emitter::module_by_id(new_id)->flags & wire::kModuleUnloaded, 0u);
  unload(large);

  // The first one again, in its old place: it is the same object.
  Plugin again(nullptr);
  ASSERT_TRUE(load_at(TRACEAF_PLUGIN_SMALL, small.base, &again));
  call_plugin(again.call);
  EXPECT_TRUE(stack_is_right(again));
  EXPECT_EQ(t_stack.frames[0].module, old_id);
  EXPECT_EQ(emitter::module_by_id(old_id)->flags & wire::kModuleUnloaded, 0u);
  unload(again);
}

// The test above proves nothing unless the old rule gives a wrong stack: this one keeps it on purpose.
TEST(Reload, TheOldRuleWouldBeWrong) {
  const Plugin small(TRACEAF_PLUGIN_SMALL);
  call_plugin(small.call);
  ASSERT_TRUE(stack_is_right(small));
  const uint64_t key = emitter::unwind::rule_key(t_stack.frames[0].ra, false);
  const auto old_rule = emitter::unwind::g_rule_table.load()->find(key);
  ASSERT_TRUE(old_rule);
  unload(small);
  Plugin large(nullptr);
  ASSERT_TRUE(load_at(TRACEAF_PLUGIN_LARGE, small.base, &large));
  call_plugin(large.call);
  ASSERT_TRUE(stack_is_right(large));
  const auto new_rule = emitter::unwind::g_rule_table.load()->find(key);
  EXPECT_NE(old_rule.cfa(), new_rule.cfa());
  // The old frame size under the new id.
  ASSERT_TRUE(emitter::unwind::cache_rule(
      key, emitter::unwind::Rule::make(old_rule.kind(), new_rule.module(), old_rule.bp(), old_rule.cfa())));
  call_plugin(large.call);
  EXPECT_FALSE(stack_is_right(large));
  unload(large);
}

// dlclose has unmapped the old library, and another thread has already loaded the new one, before the end is told.
TEST(Reload, NothingIsTrustedWhileALibraryIsUnloaded) {
  const Plugin small(TRACEAF_PLUGIN_SMALL);
  call_plugin(small.call);
  ASSERT_TRUE(stack_is_right(small));
  const uint32_t old_id = t_stack.frames[0].module;
  emitter::modules_unload_begin();
  call_plugin(small.call);  // as its destructors may
  EXPECT_TRUE(stack_is_right(small));
  EXPECT_EQ(t_stack.frames[0].module, old_id);
  dlclose(small.handle);
  Plugin large(nullptr);
  ASSERT_TRUE(load_at(TRACEAF_PLUGIN_LARGE, small.base, &large));
  call_plugin(large.call);
  EXPECT_TRUE(stack_is_right(large));
  EXPECT_NE(t_stack.frames[0].module, old_id);
  emitter::modules_unload_end();
  call_plugin(large.call);
  EXPECT_TRUE(stack_is_right(large));
  unload(large);
}

TEST(Reload, OtherThreadsWalkRightMeanwhile) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> wrong{0}, walks{0}, changes{0};
  std::thread walker([&] {
    while (!stop) {
      capture();
      ++walks;
      if (t_stack.end != NodeRoot::kComplete || t_stack.frames.size() < 3) ++wrong;
    }
  });
  // Two threads load and unload different libraries at the same time; each often finds the other's old place.
  const auto churn = [&](const char* path) {
    for (int i = 0; i < 3000; ++i) {
      const Plugin plugin(path);
      call_plugin(plugin.call);
      if (!stack_is_right(plugin)) ++wrong;
      call_plugin(plugin.call);
      if (!stack_is_right(plugin)) ++wrong;
      if (emitter::module_by_id(t_stack.frames[0].module)->path != std::string(path)) ++wrong;
      ++changes;
      unload(plugin);
    }
  };
  std::thread a(churn, TRACEAF_PLUGIN_SMALL), b(churn, TRACEAF_PLUGIN_LARGE);
  a.join();
  b.join();
  stop = true;
  walker.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(changes, 6000u);
  EXPECT_GT(walks, 1000u);
}

}  // namespace
}  // namespace traceaf::test
