// Whole sessions in a normal process: what was told to the recorder is what the reader finds.
#include <sys/mman.h>
#include <atomic>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "emitter/wire/tail.h"
#include "session_fixture.h"

namespace traceaf::emitter {
namespace {

using Counter = wire::Counter;

uint64_t lost(const reader::Profile& p) { return p.counters[static_cast<unsigned>(Counter::k_lost_events)]; }

TEST_F(SessionTest, CountsAndBytesAreWhatWasTold) {
  ASSERT_EQ(record("1",
                   [] {
                     for (uint64_t i = 0; i < 1000; ++i) birth(i, i);
                     for (uint64_t i = 0; i < 400; ++i) death(i);
                     finish();
                   }),
            0);
  const reader::Profile p = read();
  EXPECT_TRUE(p.ending.complete) << p.ending.note;
  EXPECT_EQ(p.ending.reason, wire::EndReason::kExit);
  EXPECT_EQ(p.allocated.count, 1000u);
  EXPECT_EQ(p.allocated.bytes, 999u * 1000 / 2);
  EXPECT_EQ(p.freed.count, 400u);
  EXPECT_EQ(p.live.count, 600u);
  EXPECT_EQ(p.live.bytes, 999u * 1000 / 2 - 399u * 400 / 2);
  EXPECT_EQ(p.peak.bytes, 999u * 1000 / 2);
  EXPECT_EQ(p.unknown_frees, 0u);
  EXPECT_EQ(p.unknown_types, 0u);
  EXPECT_TRUE(p.process.live_exact);
  EXPECT_FALSE(std::filesystem::exists(file("t.traf.tail")));
}

TEST_F(SessionTest, PlainOutputIsTheSameTrace) {
  ASSERT_EQ(record("1,compress=none",
                   [] {
                     birth(1, 10);
                     finish();
                   }),
            0);
  std::ifstream in(file(), std::ios::binary);
  char header[16];
  in.read(header, 16);
  EXPECT_EQ(memcmp(header, "go 1.26 trace\0\0\0", 16), 0);
  EXPECT_EQ(read().allocated.count, 1u);
}

TEST_F(SessionTest, ManyGenerationsAndThreadsLoseNothing) {
  // Small generations, so that advancing runs against writing all the time.
  ASSERT_EQ(record("1,generation=0.01,generation_size=64K",
                   [] {
                     std::vector<std::thread> threads;
                     for (uint64_t t = 0; t < 6; ++t)
                       threads.emplace_back([t] {
                         for (uint64_t i = 0; i < 60000; ++i) {
                           birth(t << 20 | (i & 1023), 8 + (i & 255));
                           death(t << 20 | (i & 1023));
                         }
                         birth(t << 20, 5);
                       });
                     for (auto& thread : threads) thread.join();
                     finish();
                   }),
            0);
  const reader::Profile p = read();
  EXPECT_TRUE(p.ending.complete) << p.ending.note;
  EXPECT_EQ(p.allocated.count, 6u * 60001);
  EXPECT_EQ(p.freed.count, 6u * 60000);
  EXPECT_EQ(p.live.count, 6u);
  EXPECT_EQ(p.live.bytes, 30u);
  EXPECT_EQ(p.unknown_frees, 0u);
  EXPECT_EQ(p.double_births, 0u);
  EXPECT_EQ(lost(p), 0u);
  EXPECT_GT(p.generations.size(), 1u);
}

TEST_F(SessionTest, FailedMovesRecordNothingAndMovesOneOfEach) {
  ASSERT_EQ(record("1",
                   [] {
                     birth(1, 100);
                     Move failed = move_begin(block(1));
                     move_failed(failed);
                     Move done = move_begin(block(1));
                     move_done(done, __builtin_frame_address(0), block(2), 200, wire::Entry::k_realloc);
                     birth(3, 7);
                     Move freed = move_begin(block(3));
                     move_freed(freed, __builtin_frame_address(0));
                     finish();
                   }),
            0);
  const reader::Profile p = read();
  EXPECT_EQ(p.allocated.count, 3u);
  EXPECT_EQ(p.freed.count, 2u);
  EXPECT_EQ(p.moves, 1u);
  EXPECT_EQ(p.live.count, 1u);
  EXPECT_EQ(p.live.bytes, 200u);
}

TEST_F(SessionTest, KilledProcessKeepsWhatItCommitted) {
  struct Page {
    std::atomic<uint64_t> before, after;
  };
  auto* page = static_cast<Page*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (unsigned round = 0; round < 20; ++round) {
    page->before = 0;
    page->after = 0;
    const std::string name = "k" + std::to_string(round) + ".traf";
    const std::string options = "1,generation=0.02,out=" + file(name.c_str());
    const int status = record(options, [&] {
      for (uint64_t i = 0;; ++i) {
        if (i == 2000u + 9000u * round) kill(getpid(), SIGKILL);
        page->before.fetch_add(1);
        birth(i & 0xfffff, 24);
        page->after.fetch_add(1);
      }
    });
    ASSERT_TRUE(WIFSIGNALED(status));
    const reader::Profile p = read(name.c_str());
    EXPECT_GE(p.allocated.count, page->after.load());
    EXPECT_LE(p.allocated.count, page->before.load());
    EXPECT_EQ(p.unknown_types, 0u);
    EXPECT_FALSE(p.ending.complete);
    EXPECT_FALSE(p.ending.note.empty());
  }
  munmap(page, 4096);
}

TEST_F(SessionTest, StandbyThenOnStartsWithAnExactSnapshot) {
  ASSERT_EQ(record("standby",
                   [] {
                     std::atomic<bool> stop{false};
                     std::vector<std::thread> threads;
                     std::atomic<uint64_t> left[4] = {};
                     for (uint64_t t = 0; t < 4; ++t)
                       threads.emplace_back([&, t] {
                         // Each thread keeps between 0 and 512 blocks alive and ends with a known number.
                         uint64_t live = 0;
                         for (uint64_t i = 0; !stop; ++i) {
                           if ((i / 512) % 2 == 0)
                             birth(t << 20 | live++, 16);
                           else
                             death(t << 20 | --live);
                         }
                         left[t] = live;
                       });
                     usleep(20000);
                     option_changed("1");
                     usleep(20000);
                     stop = true;
                     for (auto& thread : threads) thread.join();
                     uint64_t live = 0;
                     for (auto& n : left) live += n;
                     // The number goes along as the size of one last block.
                     birth(1 << 30, 1000000 + live);
                     finish();
                   }),
            0);
  const reader::Profile p = read();
  uint64_t told = 0;
  for (const auto& block : p.live_blocks)
    if (block.size >= 1000000) told = block.size - 1000000;
  EXPECT_EQ(p.live.count, told + 1);
  EXPECT_EQ(p.inherited.count + p.allocated.count - p.freed.count, p.live.count);
  EXPECT_EQ(p.unknown_frees, 0u);
  EXPECT_EQ(p.frees_before, 0u);
  EXPECT_EQ(p.double_births, 0u);
  EXPECT_TRUE(p.process.live_exact);
}

TEST_F(SessionTest, TogglesMakeOneFileWithoutEventsBetween) {
  ASSERT_EQ(record("1",
                   [] {
                     for (uint64_t i = 0; i < 100; ++i) {
                       birth(i, 1);
                       option_changed("0");
                       birth(1000 + i, 1);  // not recorded
                       death(1000 + i);
                       option_changed("1");
                     }
                     finish();
                   }),
            0);
  const reader::Profile p = read();
  EXPECT_TRUE(p.ending.complete) << p.ending.note;
  EXPECT_EQ(p.allocated.count, 100u);
  EXPECT_EQ(p.freed.count, 0u);
  EXPECT_EQ(p.generations.size(), 101u);  // one a period
}

TEST_F(SessionTest, BadOptionLeavesTheProgramUntraced) {
  ASSERT_EQ(record("1,nonsense=1",
                   [] {
                     birth(1, 1);
                     finish();
                   }),
            0);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(SessionTest, ExistingFileIsNeverOverwritten) {
  std::ofstream(file()) << "precious";
  ASSERT_EQ(record("1",
                   [] {
                     birth(1, 1);
                     finish();
                   }),
            0);
  std::ifstream in(file());
  std::string text;
  in >> text;
  EXPECT_EQ(text, "precious");
  EXPECT_EQ(read("t.1.traf").allocated.count, 1u);
}

TEST_F(SessionTest, AForkedChildIsATraceOfItsOwn) {
  ASSERT_EQ(record("1",
                   [] {
                     birth(1, 10);
                     fork_prepare();
                     const pid_t child = fork();
                     if (child == 0) {
                       fork_child();
                       birth(2, 20);
                       birth(3, 30);
                       death(1);  // the parent's block
                       finish();
                       _exit(0);
                     }
                     fork_parent();
                     int status = 0;
                     waitpid(child, &status, 0);
                     birth(4, 40);
                     finish();
                     _exit(status);
                   }),
            0);
  const reader::Profile parent = read();
  EXPECT_TRUE(parent.ending.complete);
  EXPECT_EQ(parent.allocated.count, 2u);
  EXPECT_EQ(parent.allocated.bytes, 50u);
  const reader::Profile child = read("t.1.traf");
  EXPECT_TRUE(child.ending.complete) << child.ending.note;
  EXPECT_EQ(child.allocated.count, 2u);
  EXPECT_EQ(child.allocated.bytes, 50u);
  EXPECT_EQ(child.frees_before, 1u);
  EXPECT_EQ(child.unknown_frees, 0u);
  EXPECT_EQ(child.process.parent_pid, parent.process.pid);
}

TEST_F(SessionTest, AChildOfARawForkRecordsNothingAndHarmsNothing) {
  ASSERT_EQ(record("1",
                   [] {
                     for (uint64_t i = 0; i < 10; ++i) birth(i, 1);
                     const pid_t child = fork();  // no handler of ours is told
                     if (child == 0) {
                       for (uint64_t i = 100; i < 5000; ++i) birth(i, 1);
                       finish();
                       _exit(0);
                     }
                     int status = 0;
                     waitpid(child, &status, 0);
                     for (uint64_t i = 10; i < 20; ++i) birth(i, 1);
                     finish();
                   }),
            0);
  const reader::Profile p = read();
  EXPECT_TRUE(p.ending.complete);
  EXPECT_EQ(p.allocated.count, 20u);
}

TEST_F(SessionTest, ThreadsAreReapedAndTheirRecordsReused) {
  ASSERT_EQ(record("1,generation=0.05",
                   [] {
                     for (uint64_t t = 0; t < 300; ++t)
                       std::thread([t] {
                         const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
                         thread_begin(reinterpret_cast<const void*>((here & ~uintptr_t{65535}) - 65536), 131072);
                         birth(t, 1);
                         thread_end();
                       }).join();
                     finish();
                   }),
            0);
  const reader::Profile p = read();
  EXPECT_EQ(p.allocated.count, 300u);
  unsigned with_birth = 0;
  for (const auto& thread : p.threads) with_birth += thread.allocated.count == 1 ? 1 : 0;
  EXPECT_EQ(with_birth, 300u);
  EXPECT_EQ(p.stacks_born, p.stacks_freed + 1);  // the main thread's lives on
  EXPECT_LT(p.counters[static_cast<unsigned>(Counter::k_own_bytes)], uint64_t{64} << 20);
}

TEST_F(SessionTest, UnwritableOutputIsOneLineAndNoTrace) {
  ASSERT_EQ(record("1,out=/nonexistent-folder/x.traf",
                   [] {
                     birth(1, 1);
                     death(1);
                     finish();
                   }),
            0);
}

}  // namespace
}  // namespace traceaf::emitter
