// How much of the program's stack a walk takes: threads with 16 KiB and handlers on the smallest signal stacks exist.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstring>

#include "emitter/modules.h"
#include "emitter/unwind/rule_cache.h"
#include "tests/unit/unwind/oracle.h"

extern "C" {
void expression_call(void (*function)());
}

namespace traceaf::test {
namespace {

constexpr size_t kBytes = 64 << 10;
constexpr uint8_t kPaint = 0xa5;

ucontext_t g_back, g_there;
uint8_t* g_room;
uintptr_t g_sp;  // below it is what the walk used
wire::NodeRoot g_end;
uint32_t g_frames;
emitter::unwind::Step g_out[64];

__attribute__((noinline)) void walk_here() {
  const auto start = emitter::unwind::start_of(__builtin_frame_address(0));
  asm volatile("mov %%rsp, %0" : "=r"(g_sp));
  g_frames = emitter::unwind::walk(start, {0, 0}, g_out, 64, &g_end);
}

void (*g_body)();
void body() {
  g_body();
  swapcontext(&g_there, &g_back);
}

// Bytes below the caller's stack pointer that `walk` wrote to, its return address included.
size_t measure(void (*how)()) {
  if (g_room == nullptr) {
    g_room = static_cast<uint8_t*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  std::memset(g_room, kPaint, kBytes);
  getcontext(&g_there);
  g_there.uc_stack.ss_sp = g_room;
  g_there.uc_stack.ss_size = kBytes;
  g_there.uc_link = &g_back;
  g_body = how;
  makecontext(&g_there, body, 0);
  swapcontext(&g_back, &g_there);
  size_t untouched = 0;
  while (untouched < kBytes && g_room[untouched] == kPaint) ++untouched;
  return g_sp - (reinterpret_cast<uintptr_t>(g_room) + untouched);
}

class StackUse : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers enlarge frames";
#endif
    measure(walk_here);
    ASSERT_EQ(g_end, wire::NodeRoot::kComplete);
  }
};

TEST_F(StackUse, OfKnownFramesIsSmall) {
  const size_t bytes = measure(walk_here);
  RecordProperty("bytes", static_cast<int>(bytes));
  EXPECT_GT(bytes, 50u);
  EXPECT_LE(bytes, 450u);
}

TEST_F(StackUse, OfNewFramesIsBounded) {
  // Forget the rules, as if seen for the first time.
  const emitter::unwind::RuleTable* known = emitter::unwind::g_rule_table.exchange(nullptr);
  ASSERT_NE(known, nullptr);
  const size_t bytes = measure(walk_here);
  RecordProperty("bytes", static_cast<int>(bytes));
  EXPECT_LE(bytes, 1000u);
}

TEST_F(StackUse, OfModulesToBeCheckedAgainIsBounded) {
  emitter::modules_invalidate();
  const size_t bytes = measure(walk_here);
  RecordProperty("bytes", static_cast<int>(bytes));
  EXPECT_LE(bytes, 1000u);
}

TEST_F(StackUse, OfExpressionsIsBounded) {
  const size_t bytes = measure([] { expression_call(walk_here); });
  EXPECT_EQ(g_end, wire::NodeRoot::kComplete);
  RecordProperty("bytes", static_cast<int>(bytes));
  EXPECT_LE(bytes, 1000u);
}

}  // namespace
}  // namespace traceaf::test
