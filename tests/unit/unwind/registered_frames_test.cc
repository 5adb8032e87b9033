// Code outside every ELF object: with registered tables, with frame pointers, with neither, and registration itself.
#include "emitter/unwind/registered_frames.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "emitter/modules.h"
#include "emitter/region.h"
#include "emitter/unwind/module_record.h"
#include "tests/unit/unwind/generated_code.h"
#include "tests/unit/unwind/oracle.h"

extern "C" void data_rbp_call(void (*function)(), uintptr_t rbp);

namespace traceaf::test {
namespace {

using emitter::unwind::frames_deregistered;
using emitter::unwind::frames_registered;
using emitter::unwind::kGuessed;
using emitter::unwind::Memory;
using emitter::unwind::Outcome;
using emitter::unwind::registered_ranges;
using emitter::unwind::Registers;
using emitter::unwind::step_registered;
using generated::Chain;
using generated::Tables;
using wire::NodeRoot;

thread_local Stack t_stack;
void capture() { t_stack = walk_from(emitter::unwind::start_of(__builtin_frame_address(0)), stack_bounds(), 128); }

// Calls `function` with an rbp that leads nowhere, so that no frame pointer helps.
void call(generated::Function function) { data_rbp_call(function, 0x1234567); }

// The stack: all of the chain, then data_rbp_call and the rest.
bool is_whole(const Chain& chain, uint32_t flags) {
  if (t_stack.end != NodeRoot::kComplete || t_stack.frames.size() < Chain::kLevels + 3) return false;
  for (unsigned i = 0; i < t_stack.frames.size(); ++i) {
    const auto& frame = t_stack.frames[i];
    const bool in_chain = i < Chain::kLevels;
    // What guessing brought there is the frame behind.
    const bool is_guessed = flags == kGuessed && i >= 1 && i <= Chain::kLevels;
    if (chain.holds(frame.ra) != in_chain || (frame.module == 0) != in_chain) return false;
    if (frame.flags != (is_guessed ? uint32_t{kGuessed} : 0)) return false;
  }
  const auto caller = reinterpret_cast<uintptr_t>(&data_rbp_call);
  return t_stack.frames[Chain::kLevels].ra > caller && t_stack.frames[Chain::kLevels].ra < caller + 32;
}

TEST(GeneratedCode, WithTablesIsCrossedByThem) {
  Chain chain;
  for (const unsigned frame : {8u, 24u, 136u, 3000u}) {
    Tables tables;
    const auto function = chain.write(false, frame, capture, &tables);
    frames_registered(tables.section());
    EXPECT_EQ(registered_ranges(), Chain::kLevels);
    call(function);
    EXPECT_TRUE(is_whole(chain, 0)) << frame;
    frames_deregistered(tables.section());
    EXPECT_EQ(registered_ranges(), 0u);
    call(function);
    EXPECT_EQ(t_stack.end, NodeRoot::kNoCfi);
    EXPECT_EQ(t_stack.frames.size(), 1u);
  }
}

TEST(GeneratedCode, WithFramePointersIsCrossedAndMarked) {
  Chain chain;
  for (const unsigned frame : {0u, 16u, 1024u}) {
    call(chain.write(true, frame, capture, nullptr));
    EXPECT_TRUE(is_whole(chain, kGuessed)) << frame;
  }
}

TEST(GeneratedCode, IsNotLookedForInDataOrOnTheStack) {
  Chain chain;
  const auto function = chain.write(false, 8, capture, nullptr);
  static uint8_t data[64];
  uint8_t on_stack[64];
  std::memset(data, 0x90, sizeof(data));
  std::memset(on_stack, 0xe8, sizeof(on_stack));  // looks like calls
  uintptr_t words[4] = {0, reinterpret_cast<uintptr_t>(data) + 32, 0, reinterpret_cast<uintptr_t>(on_stack) + 32};
  for (const int at : {0, 2}) {
    data_rbp_call(function, reinterpret_cast<uintptr_t>(&words[at]));
    EXPECT_EQ(t_stack.end, NodeRoot::kNoCfi) << at;
    EXPECT_EQ(t_stack.frames.size(), 1u);
  }
  for (const uintptr_t nowhere : {uintptr_t{0x10}, uintptr_t{1} << 47, ~uintptr_t{0} - 3, uintptr_t{0x7fff00000000}}) {
    words[1] = nowhere;
    data_rbp_call(function, reinterpret_cast<uintptr_t>(&words[0]));
    EXPECT_EQ(t_stack.frames.size(), 1u);
  }
}

TEST(RegisteredFrames, TablesMayBeFreedEarly) {
  Chain chain;
  auto tables = std::make_unique<Tables>();
  const auto function = chain.write(false, 40, capture, tables.get());
  const void* section = tables->section();
  frames_registered(section);
  std::memset(const_cast<uint8_t*>(tables->section()), 0xff, tables->bytes());
  call(function);
  EXPECT_TRUE(is_whole(chain, 0));
  frames_deregistered(section);
  EXPECT_EQ(registered_ranges(), 0u);
}

TEST(RegisteredFrames, AreOneWhenToldTwice) {
  Chain chain;
  Tables tables, others;
  chain.write(false, 40, capture, &tables);
  Chain other_chain;
  const auto function = other_chain.write(false, 72, capture, &others);
  frames_registered(tables.section());
  frames_registered(tables.section());
  frames_registered(others.section());
  frames_registered(tables.section());
  EXPECT_EQ(registered_ranges(), 2 * Chain::kLevels);
  frames_deregistered(tables.section());
  frames_deregistered(tables.section());
  EXPECT_EQ(registered_ranges(), Chain::kLevels);
  call(function);
  EXPECT_TRUE(is_whole(other_chain, 0));
  frames_deregistered(others.section());
  frames_registered(nullptr);
  frames_deregistered(nullptr);
  EXPECT_EQ(registered_ranges(), 0u);
}

// Code replaced without a word: the newer tables hold.
TEST(RegisteredFrames, NewerTablesReplaceOlderOnesOfTheSameCode) {
  Chain chain;
  Tables old_tables, tables;
  chain.write(false, 40, capture, &old_tables);
  frames_registered(old_tables.section());
  const auto function = chain.write(false, 200, capture, &tables);
  frames_registered(tables.section());
  EXPECT_EQ(registered_ranges(), Chain::kLevels);
  call(function);
  EXPECT_TRUE(is_whole(chain, 0));
  frames_deregistered(old_tables.section());
  EXPECT_EQ(registered_ranges(), Chain::kLevels);
  frames_deregistered(tables.section());
  EXPECT_EQ(registered_ranges(), 0u);
}

// As LLVM's libunwind wants them: one description, whose common entry lies before it.
TEST(RegisteredFrames, MayBeOneDescriptionAlone) {
  Chain chain;
  Tables tables;
  chain.write(false, 40, capture, &tables);
  frames_registered(tables.last_entry());
  EXPECT_EQ(registered_ranges(), 1u);
  frames_deregistered(tables.last_entry());
  EXPECT_EQ(registered_ranges(), 0u);
}

TEST(RegisteredFrames, LeaveOutCodeOfElfObjects) {
  const auto* here = reinterpret_cast<const uint8_t*>(&capture);
  Tables tables;
  tables.add(here, here + 100, 8);
  frames_registered(tables.section());
  EXPECT_EQ(registered_ranges(), 0u);
  frames_deregistered(tables.section());
}

// Else every thread would look at every library again whenever a function is compiled.
TEST(RegisteredFrames, LeaveTheEpochAlone) {
  Chain chain;
  Tables tables;
  chain.write(false, 40, capture, &tables);
  const uint64_t before = emitter::modules_epoch();
  frames_registered(tables.section());
  frames_deregistered(tables.section());
  EXPECT_EQ(emitter::modules_epoch(), before);
}

// One of many functions at made-up places: `step` is how far apart they are.
constexpr uintptr_t kPlace = uintptr_t{0x10000000000}, kStep = 64;
bool is_known(uintptr_t place, unsigned frame) {
  uintptr_t words[64] = {};
  const unsigned at = (frame + 8) / 8 - 1;
  words[at] = 0xabcd;
  Registers regs{place + 20, reinterpret_cast<uintptr_t>(words), 0x55};
  Memory memory({0, 0});
  bool signal_frame = true;
  Outcome outcome = Outcome::kEnd;
  if (!step_registered(place + 19, &regs, &memory, &signal_frame, &outcome)) return false;
  EXPECT_EQ(outcome, Outcome::kStepped);
  EXPECT_FALSE(signal_frame);
  EXPECT_EQ(regs.ip, 0xabcdu);
  EXPECT_EQ(regs.sp, reinterpret_cast<uintptr_t>(&words[at + 1]));
  EXPECT_EQ(regs.bp, 0x55u);
  return true;
}

TEST(RegisteredFrames, ManyComeAndGoInBoundedMemory) {
  std::mt19937 random(1);
  std::map<unsigned, std::unique_ptr<Tables>> known;
  const auto frame_of = [](unsigned i) { return 8 + i % 50 * 8; };
  uint64_t settled = 0;
  for (unsigned round = 0; round < 20'000; ++round) {
    const unsigned i = random() % 3000;
    const uintptr_t place = kPlace + i * kStep;
    auto found = known.find(i);
    ASSERT_EQ(is_known(place, frame_of(i)), found != known.end()) << round;
    if (found != known.end()) {
      frames_deregistered(found->second->section());
      known.erase(found);
    } else {
      auto tables = std::make_unique<Tables>();
      const auto* begin = reinterpret_cast<const uint8_t*>(place);
      tables->add(begin, begin + 40, frame_of(i));
      frames_registered(tables->section());
      known[i] = std::move(tables);
    }
    ASSERT_EQ(registered_ranges(), known.size());
    if (round == 10'000) settled = emitter::g_own_bytes;
  }
  EXPECT_LE(emitter::g_own_bytes - settled, uint64_t{512} << 10);
  for (const auto& [i, tables] : known) frames_deregistered(tables->section());
  EXPECT_EQ(registered_ranges(), 0u);
}

// Damaged tables at the very end of a mapping: nothing is read beyond it, and nothing loops.
TEST(RegisteredFrames, DamagedTablesDoNoHarm) {
  constexpr size_t kPage = 4096;
  auto* room =
      static_cast<uint8_t*>(mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(mprotect(room + kPage, kPage, PROT_NONE), 0);
  std::mt19937 random(2);
  unsigned kept = 0;
  for (unsigned round = 0; round < 20'000; ++round) {
    Tables tables;
    for (unsigned i = 0; i < 4; ++i) {
      const auto* begin = reinterpret_cast<const uint8_t*>(kPlace + i * kStep);
      tables.add(begin, begin + 40, 8 * i);
    }
    const size_t bytes = tables.bytes() - (round % 4 == 0 ? random() % 8 : 0);
    uint8_t* copy = room + kPage - bytes;
    std::memcpy(copy, tables.section(), bytes);
    for (unsigned n = random() % 4; n != 0; --n) copy[random() % bytes] = static_cast<uint8_t>(random());
    frames_registered(copy);
    kept += registered_ranges();
    for (unsigned i = 0; i < 4; ++i) {
      uintptr_t words[16] = {};
      Registers regs{kPlace + i * kStep + 20, reinterpret_cast<uintptr_t>(words), 0};
      Memory memory({0, 0});
      bool signal_frame = false;
      Outcome outcome{};
      step_registered(regs.ip - 1, &regs, &memory, &signal_frame, &outcome);
    }
    frames_deregistered(copy);
    ASSERT_EQ(registered_ranges(), 0u);
  }
  EXPECT_GT(kept, 20'000u);
  munmap(room, 2 * kPage);
}

TEST(RegisteredFrames, ChangeWhileOthersWalk) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a reader notices afterwards that what it read was being written";
#endif
  // The code that is walked lies above the other, so that each change moves its ranges in the array.
  Chain rooms[3];
  Chain* chains[] = {&rooms[0], &rooms[1], &rooms[2]};
  std::sort(std::begin(chains), std::end(chains),
            [](const Chain* a, const Chain* b) { return a->begin() < b->begin(); });
  Chain& chain = *chains[2];
  Tables tables;
  const auto function = chain.write(false, 40, capture, &tables);
  frames_registered(tables.section());
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> walks{0}, broken{0};
  // More than there are processors: a walk is wrong when it was stopped while it read and went on with what it had
  // seen.
  std::vector<std::thread> walkers;
  for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency() + 1; ++i) {
    walkers.emplace_back([&] {
      while (!stop) {
        call(function);
        ++walks;
        broken += is_whole(chain, 0) ? 0 : 1;
      }
    });
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  while (std::chrono::steady_clock::now() < until) {
    // A version and the next but one, which is built where the first was, differ in what lies below.
    Tables first, second;
    chains[0]->write(false, 8, capture, &first);
    chains[1]->write(false, 8, capture, &second);
    frames_registered(first.section());
    frames_registered(second.section());
    frames_deregistered(first.section());
    frames_deregistered(second.section());
  }
  stop = true;
  for (auto& walker : walkers) walker.join();
  EXPECT_EQ(broken, 0u);
  EXPECT_GT(walks, 100u);
  frames_deregistered(tables.section());
}

}  // namespace
}  // namespace traceaf::test
