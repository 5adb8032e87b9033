// The ends of a walk: code without tables, wrong tables, frame pointers that are data, stacks that stop short, junk.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "emitter/modules.h"
#include "emitter/unwind/memory.h"
#include "tests/unit/unwind/oracle.h"

extern "C" {
void no_cfi_call(void (*function)());
void no_cfi_frame_call(void (*function)());
void no_cfi_data_rbp_call(void (*function)(), uintptr_t rbp);
void data_rbp_call(void (*function)(), uintptr_t rbp);
void wrong_rbp_call(void (*function)(), uintptr_t rbp);
void unknown_register_call(void (*function)());
void expression_call(void (*function)());
}

namespace traceaf::test {
namespace {

using emitter::unwind::Bounds;
using emitter::unwind::kGuessed;
using emitter::unwind::kInterrupted;
using emitter::unwind::Start;
using emitter::unwind::start_of;
using emitter::unwind::Step;
using wire::NodeRoot;

Stack g_stack;
Start g_start;
// Used in signal handlers: does not allocate once g_stack has room.
__attribute__((noinline)) void capture() {
  constexpr uint32_t kCap = 4096;
  g_start = start_of(__builtin_frame_address(0));
  static Step frames[kCap];
  const uint32_t n = emitter::unwind::walk(g_start, stack_bounds(), frames, kCap, &g_stack.end);
  g_stack.frames.assign(frames, frames + n);
}

// Whether a return address lies in the function that begins at `function` (short ones in nocfi.S).
template <typename Function>
bool is_in(uintptr_t ra, Function* function) {
  const auto begin = reinterpret_cast<uintptr_t>(function);
  return ra > begin && ra < begin + 80;
}

// `with` runs while the captured frames are alive.
__attribute__((noinline)) void direct(void (*with)() = [] {}) {
  capture();
  with();
  asm volatile("");
}

TEST(Walk, ReachesTheEntryOfTheProcess) {
  direct();
  EXPECT_EQ(g_stack.end, NodeRoot::kComplete);
  EXPECT_GT(g_stack.frames.size(), 5u);
  for (const Step& step : g_stack.frames) {
    EXPECT_NE(step.module, 0u);
    EXPECT_EQ(step.flags, 0u);
  }
  EXPECT_EQ(g_stack.frames.front().module, emitter::module_of(reinterpret_cast<uintptr_t>(&direct)));
}

TEST(Walk, GivesThePrefixAtEveryCap) {
  direct([] {
    const auto frames = static_cast<uint32_t>(g_stack.frames.size());
    for (uint32_t cap = 0; cap <= frames + 2; ++cap) {
      const Stack part = walk_from(g_start, stack_bounds(), cap);
      ASSERT_EQ(part.frames.size(), std::min(cap, frames));
      EXPECT_EQ(part.end, cap < frames ? NodeRoot::kDepthCap : NodeRoot::kComplete) << cap;
      for (size_t i = 0; i < part.frames.size(); ++i) EXPECT_EQ(part.frames[i].ra, g_stack.frames[i].ra);
    }
  });
}

TEST(Walk, IsTheSameWithoutBounds) {
  direct([] {
    const Stack probed = walk_from(g_start, {0, 0});
    ASSERT_EQ(probed.frames.size(), g_stack.frames.size());
    for (size_t i = 0; i < probed.frames.size(); ++i) EXPECT_EQ(probed.frames[i].ra, g_stack.frames[i].ra);
    EXPECT_EQ(probed.end, NodeRoot::kComplete);
  });
}

TEST(Walk, CrossesCodeWithoutTablesByItsFramePointer) {
  no_cfi_frame_call(capture);
  EXPECT_EQ(g_stack.end, NodeRoot::kComplete);
  ASSERT_GT(g_stack.frames.size(), 3u);
  EXPECT_TRUE(is_in(g_stack.frames[0].ra, no_cfi_frame_call));
  EXPECT_EQ(g_stack.frames[0].flags, 0u);
  EXPECT_EQ(g_stack.frames[1].flags, kGuessed);
}

TEST(Walk, StopsAtCodeWithoutTablesWhoseFramePointerIsData) {
  for (const uintptr_t rbp : {uintptr_t{0}, uintptr_t{1}, uintptr_t{0x1234567}, ~uintptr_t{7}, uintptr_t{1} << 63}) {
    no_cfi_data_rbp_call(capture, rbp);
    EXPECT_EQ(g_stack.end, NodeRoot::kNoCfi);
    ASSERT_EQ(g_stack.frames.size(), 1u);
    EXPECT_TRUE(is_in(g_stack.frames[0].ra, no_cfi_data_rbp_call));
    EXPECT_NE(g_stack.frames[0].module, 0u);
  }
}

// A pointer into the stack whose words lead nowhere must not be taken for a frame.
TEST(Walk, DoesNotBelieveAFramePointerThatPointsAtOtherData) {
  uintptr_t words[8] = {};
  words[0] = reinterpret_cast<uintptr_t>(&words[4]);
  words[1] = reinterpret_cast<uintptr_t>(&words);            // not code
  words[3] = reinterpret_cast<uintptr_t>(&no_cfi_call) + 2;  // code, but behind no call
  for (const int at : {0, 2}) {
    no_cfi_data_rbp_call(capture, reinterpret_cast<uintptr_t>(&words[at]));
    EXPECT_EQ(g_stack.end, NodeRoot::kNoCfi);
    EXPECT_EQ(g_stack.frames.size(), 1u);
  }
}

TEST(Walk, EndsOrIsMarkedAtCodeWithoutTablesInTheMiddle) {
  // rbp belongs to whoever set it last: the step may leave a frame out, which it says.
  no_cfi_call(capture);
  ASSERT_GE(g_stack.frames.size(), 1u);
  EXPECT_TRUE(is_in(g_stack.frames[0].ra, no_cfi_call));
  if (g_stack.frames.size() > 1) {
    EXPECT_EQ(g_stack.frames[1].flags, kGuessed);
  } else {
    EXPECT_EQ(g_stack.end, NodeRoot::kNoCfi);
  }
}

TEST(Walk, PassesAFramePointerUsedAsDataWhereTablesAreRight) {
  for (const uintptr_t rbp : {uintptr_t{0}, uintptr_t{0x1234567}, ~uintptr_t{0}}) {
    take_tally();
    data_rbp_call(compare_here, rbp);
    const Tally tally = take_tally();
    EXPECT_EQ(tally.compared, 1u);
    EXPECT_EQ(tally.different + tally.no_cfi, 0u) << tally.first_difference;
  }
}

TEST(Walk, EvaluatesHandWrittenExpressions) {
  take_tally();
  expression_call(compare_here);
  const Tally tally = take_tally();
  EXPECT_EQ(tally.compared, 1u);
  EXPECT_EQ(tally.different + tally.no_cfi, 0u) << tally.first_difference;
}

TEST(Walk, StopsWhereARegisterIsNeededThatNobodyFollows) {
  unknown_register_call(capture);
  EXPECT_EQ(g_stack.end, NodeRoot::kNoCfi);
  ASSERT_EQ(g_stack.frames.size(), 1u);
  EXPECT_TRUE(is_in(g_stack.frames[0].ra, unknown_register_call));
}

TEST(Walk, StopsAtWrongTablesWithoutAFault) {
  for (const uintptr_t rbp : {uintptr_t{0}, uintptr_t{0x1000}, uintptr_t{0x123456789abcdef}, ~uintptr_t{0xf}}) {
    wrong_rbp_call(capture, rbp);
    EXPECT_EQ(g_stack.end, NodeRoot::kUnreadable);
    EXPECT_EQ(g_stack.frames.size(), 1u);
  }
}

TEST(Walk, StopsAtTheEndOfAMapping) {
  constexpr size_t kPage = 4096;
  direct();
  const uintptr_t ra = g_stack.frames[0].ra;
  auto* room = static_cast<char*>(mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(mprotect(room + kPage, kPage, PROT_NONE), 0);
  const auto end = reinterpret_cast<uintptr_t>(room) + kPage;
  for (uintptr_t below = 0; below <= 512; below += 8) {
    for (const uintptr_t rbp : {end, end - 8, end + 8, end - below}) {
      const Stack stack = walk_from({ra, end - below, rbp}, {0, 0});
      // The mapping is all zeros: either a zero return address ends the walk or the mapping does.
      EXPECT_EQ(stack.frames.size(), 1u);
      EXPECT_TRUE(stack.end == NodeRoot::kUnreadable || stack.end == NodeRoot::kComplete);
      EXPECT_TRUE(below != 0 || stack.end == NodeRoot::kUnreadable);
    }
  }
  munmap(room, 2 * kPage);
}

// Machine code that calls capture(), in memory of no ELF object.
class Generated {
 public:
  explicit Generated(bool frame) {
    code_ = static_cast<uint8_t*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    uint8_t* at = code_;
    const auto put = [&at](std::initializer_list<uint8_t> bytes) {
      for (const uint8_t byte : bytes) *at++ = byte;
    };
    put({0x55});                         // push %rbp
    if (frame) put({0x48, 0x89, 0xe5});  // mov %rsp, %rbp
    put({0x48, 0xb8});                   // movabs $capture, %rax
    void (*target)() = capture;
    std::memcpy(at, &target, 8);
    at += 8;
    put({0xff, 0xd0, 0x5d, 0xc3});  // call *%rax; pop %rbp; ret
    mprotect(code_, 4096, PROT_READ | PROT_EXEC);
  }
  ~Generated() { munmap(code_, 4096); }
  void (*function() const)() { return reinterpret_cast<void (*)()>(code_); }
  bool holds(uintptr_t pc) const {
    return pc >= reinterpret_cast<uintptr_t>(code_) && pc < reinterpret_cast<uintptr_t>(code_) + 4096;
  }

 private:
  uint8_t* code_;
};

TEST(Walk, CrossesGeneratedCodeByItsFramePointer) {
  const Generated code(true);
  data_rbp_call(code.function(), 0x1234567);
  ASSERT_GE(g_stack.frames.size(), 3u);
  EXPECT_TRUE(code.holds(g_stack.frames[0].ra));
  EXPECT_EQ(g_stack.frames[0].module, 0u);
  EXPECT_TRUE(is_in(g_stack.frames[1].ra, data_rbp_call));
  EXPECT_EQ(g_stack.frames[1].flags, kGuessed);
  EXPECT_EQ(g_stack.end, NodeRoot::kComplete);
}

TEST(Walk, StopsAtGeneratedCodeWithoutOne) {
  const Generated code(false);
  data_rbp_call(code.function(), 0x1234567);
  EXPECT_EQ(g_stack.end, NodeRoot::kNoCfi);
  ASSERT_EQ(g_stack.frames.size(), 1u);
  EXPECT_TRUE(code.holds(g_stack.frames[0].ra));
  EXPECT_EQ(g_stack.frames[0].module, 0u);
}

// Index of the first frame that was interrupted.
size_t interrupted_frame() {
  size_t i = 0;
  while (i < g_stack.frames.size() && (g_stack.frames[i].flags & kInterrupted) == 0) ++i;
  return i;
}

TEST(Walk, MarksTheInterruptedFrameAndGivesItsExactPc) {
  static uintptr_t interrupted_pc;
  g_stack.frames.reserve(4096);
  struct sigaction action {
  }, before{};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t*, void* context) {
    interrupted_pc = static_cast<uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
    capture();
    asm volatile("");
  };
  sigaction(SIGUSR1, &action, &before);
  raise(SIGUSR1);
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(g_stack.end, NodeRoot::kComplete);
  const size_t at = interrupted_frame();
  ASSERT_GE(at, 2u);  // behind the handler and the return trampoline
  ASSERT_LT(at + 1, g_stack.frames.size());
  EXPECT_EQ(g_stack.frames[at].ra, interrupted_pc);
  for (size_t i = 0; i < g_stack.frames.size(); ++i)
    EXPECT_EQ(g_stack.frames[i].flags, i == at ? uint32_t{kInterrupted} : 0u);
}

// A forged ucontext that is its own caller.
TEST(Walk, LeavesARingOfSignalFrames) {
  g_stack.frames.reserve(4096);
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {
    capture();
    asm volatile("");
  };
  sigaction(SIGUSR1, &action, &before);
  raise(SIGUSR1);
  sigaction(SIGUSR1, &before, nullptr);
  const size_t at = interrupted_frame();
  ASSERT_GE(at, 2u);
  ASSERT_LT(at, g_stack.frames.size());
  const uintptr_t trampoline = g_stack.frames[at - 1].ra;
  uintptr_t forged[32] = {};
  forged[160 / 8] = reinterpret_cast<uintptr_t>(forged);
  forged[168 / 8] = trampoline;
  const Stack stack = walk_from({trampoline, reinterpret_cast<uintptr_t>(forged), 0}, stack_bounds());
  EXPECT_EQ(stack.end, NodeRoot::kUnreadable);
  EXPECT_LT(stack.frames.size(), 100u);
  forged[168 / 8] = 0;  // a jump to nowhere
  EXPECT_EQ(walk_from({trampoline, reinterpret_cast<uintptr_t>(forged), 0}, stack_bounds()).end, NodeRoot::kNoCfi);
}

TEST(Walk, NeverFaultsOnJunk) {
  direct();
  std::mt19937_64 random(1);
  const uintptr_t in_libc = reinterpret_cast<uintptr_t>(&qsort), in_program = reinterpret_cast<uintptr_t>(&direct);
  std::vector<uintptr_t> known;
  for (const Step& step : g_stack.frames) known.push_back(step.ra);
  uintptr_t forged[512];
  const auto pick = [&](unsigned kind) -> uintptr_t {
    switch (kind % 10) {
      case 0:
        return random();
      case 1:
        return known[random() % known.size()];
      case 2:
        return in_libc - 300'000 + random() % 600'000;
      case 3:
        return in_program - 50'000 + random() % 100'000;
      case 4:
        return reinterpret_cast<uintptr_t>(forged) + random() % sizeof(forged) / 8 * 8;
      case 5:
        return reinterpret_cast<uintptr_t>(forged) + random() % sizeof(forged);
      case 6:
        return random() % 4096 - 2048;
      case 7:
        return stack_bounds().hi - random() % 8192 / 8 * 8;
      case 8:
        return uintptr_t{1} << random() % 64;
      default:
        return random() >> random() % 64;
    }
  };
  constexpr uint32_t kCap = 64;
  Step frames[kCap + 1];
  uint64_t ends[5] = {}, steps = 0;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr uint64_t kWalks = 200'000;
#else
  constexpr uint64_t kWalks = 2'000'000;
#endif
  for (uint64_t i = 0; i < kWalks; ++i) {
    if (i % 64 == 0) {
      for (uintptr_t& word : forged) word = pick(static_cast<unsigned>(random()) % 6);
    }
    const uint64_t dice = random();
    const Start start{pick(1 + dice % 3 + (dice >> 40 & 7) / 7 * 5), pick(4 + (dice >> 8) % 6),
                      pick((dice >> 16) & 15)};
    const Bounds bounds = (dice >> 32) % 4 == 0 ? Bounds{0, 0} : stack_bounds();
    frames[kCap] = {42, 42, 42};
    NodeRoot end = NodeRoot::kNone;
    const uint32_t n = emitter::unwind::walk(start, bounds, frames, kCap, &end);
    ASSERT_LE(n, kCap);
    ASSERT_EQ(frames[kCap].ra, 42u);
    ASSERT_TRUE(end >= NodeRoot::kComplete && end <= NodeRoot::kUnreadable);
    ++ends[static_cast<uint32_t>(end)];
    steps += n;
  }
  EXPECT_GT(steps, kWalks + kWalks / 10);
  for (const NodeRoot root : {NodeRoot::kComplete, NodeRoot::kNoCfi, NodeRoot::kUnreadable}) {
    EXPECT_GT(ends[static_cast<uint32_t>(root)], kWalks / 2000) << static_cast<uint32_t>(root);
  }
}

TEST(Walk, KeepsErrno) {
  errno = 4711;
  emitter::unwind::invalidate();
  no_cfi_data_rbp_call(capture, 0x1234567);
  walk_from({0x10, 0x1000, 0x2000}, {0, 0});
  direct();
  EXPECT_EQ(errno, 4711);
}

TEST(Memory, ProbesWithoutFault) {
  using emitter::unwind::probe_readable;
  constexpr size_t kPage = 4096;
  auto* room = static_cast<char*>(mmap(nullptr, 2 * kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(mprotect(room + kPage, kPage, PROT_NONE), 0);
  const auto at = reinterpret_cast<uintptr_t>(room);
  sigset_t before, after;
  sigprocmask(SIG_SETMASK, nullptr, &before);
  EXPECT_TRUE(probe_readable(at));
  EXPECT_TRUE(probe_readable(at + kPage - 8));
  EXPECT_FALSE(probe_readable(at + kPage - 7));
  EXPECT_FALSE(probe_readable(at + kPage));
  EXPECT_FALSE(probe_readable(0x10));
  EXPECT_FALSE(probe_readable(~uintptr_t{0} - 64));
  EXPECT_FALSE(probe_readable(uintptr_t{1} << 62));
  sigprocmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(memcmp(&before, &after, 8), 0);

  emitter::unwind::Memory memory({0, 0});
  uintptr_t value = 1;
  EXPECT_TRUE(memory.read(at + kPage - 8, &value));
  EXPECT_EQ(value, 0u);
  for (uintptr_t offset = kPage - 7; offset < kPage + 8; ++offset) EXPECT_FALSE(memory.read(at + offset, &value));
  EXPECT_FALSE(memory.read(~uintptr_t{0}, &value));
  EXPECT_FALSE(memory.read(~uintptr_t{0} - 3, &value));
  munmap(room, 2 * kPage);
}

}  // namespace
}  // namespace traceaf::test
