// traceaf on, off, standby and status against a recorder that this test plays itself.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>
#include <thread>

#include "emitter/wire/tail.h"
#include "run_program.h"

namespace traceaf {
namespace {

using test::Folder;
using test::Ran;
using wire::RecordState;
using wire::TailHeader;

const std::string kTraceaf = TRACEAF_PROGRAM;

bool has(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

TEST(Control, WrongUsageIs2) {
  for (const char* verb : {"on", "off", "standby", "status"}) {
    EXPECT_EQ(test::run({kTraceaf, verb}).code(), 2);
    EXPECT_EQ(test::run({kTraceaf, verb, "12x"}).code(), 2);
    EXPECT_EQ(test::run({kTraceaf, verb, "0"}).code(), 2);
    EXPECT_EQ(test::run({kTraceaf, verb, "--help"}).code(), 0);
  }
}

TEST(Control, ProcessThatIsNotThere) {
  const Ran ran = test::run({kTraceaf, "on", "999999999"});
  EXPECT_EQ(ran.code(), 1);
  EXPECT_TRUE(has(ran.err, "there is no process 999999999")) << ran.err;
}

TEST(Control, ProcessThatIsNotTraced) {
  const Ran ran = test::run({kTraceaf, "status", std::to_string(getpid())});
  EXPECT_EQ(ran.code(), 1);
  EXPECT_TRUE(has(ran.err, "is not traced")) << ran.err;
}

// A tail of this process, mapped as the recorder maps it.
class FakeTail {
 public:
  explicit FakeTail(const std::string& path) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(fd, wire::kTailHeaderBytes) != 0) abort();
    void* at = mmap(nullptr, wire::kTailHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    header_ = new (at) TailHeader{};
    header_->magic = wire::kTailMagic;
    header_->version = wire::kTailVersion;
    header_->pid = static_cast<uint32_t>(getpid());
  }
  ~FakeTail() { munmap(header_, wire::kTailHeaderBytes); }
  FakeTail(const FakeTail&) = delete;
  FakeTail& operator=(const FakeTail&) = delete;
  TailHeader& header() { return *header_; }

  // Sleeps on the bell until a request comes, and obeys it. False: none came within 5 s.
  bool answer() {
    for (int i = 0; i < 5; ++i) {
      const uint32_t bell = header_->bell.load();
      if (const uint32_t request = header_->request.exchange(0); request != 0) {
        header_->state.store(request - 1);
        return true;
      }
      const timespec second{1, 0};
      syscall(SYS_futex, &header_->bell, FUTEX_WAIT, bell, &second, nullptr, 0);
    }
    return false;
  }

 private:
  TailHeader* header_;
};

std::string self() { return std::to_string(getpid()); }

TEST(Control, SwitchesAndSaysWhatWas) {
  const Folder folder;
  FakeTail tail(folder.path("app.traf.tail"));
  bool answered = false;
  std::thread recorder([&] { answered = tail.answer(); });
  const Ran ran = test::run({kTraceaf, "on", self()});
  recorder.join();
  EXPECT_TRUE(answered);
  EXPECT_EQ(ran.code(), 0) << ran.err;
  EXPECT_EQ(tail.header().state.load(), static_cast<uint32_t>(RecordState::kOn));
  EXPECT_GE(tail.header().bell.load(), 1U);
  EXPECT_TRUE(has(ran.out, "now on, was off; trace " + folder.path("app.traf") + "\n")) << ran.out;
  EXPECT_TRUE(has(test::run({kTraceaf, "on", self()}).out, "already on"));
}

TEST(Control, EachVerbAsksForItsState) {
  const Folder folder;
  FakeTail tail(folder.path("app.traf.tail"));
  for (const auto& [verb, state] : {std::pair{"standby", RecordState::kStandby}, std::pair{"on", RecordState::kOn},
                                    std::pair{"off", RecordState::kOff}}) {
    std::thread recorder([&] { tail.answer(); });
    EXPECT_EQ(test::run({kTraceaf, verb, self()}).code(), 0);
    recorder.join();
    EXPECT_EQ(tail.header().state.load(), static_cast<uint32_t>(state));
  }
}

TEST(Control, WithoutAnAnswerTheRequestIsTakenBack) {
  const Folder folder;
  FakeTail tail(folder.path("app.traf.tail"));
  const Ran ran = test::run({kTraceaf, "on", self()});
  EXPECT_EQ(ran.code(), 1);
  EXPECT_TRUE(has(ran.err, "did not answer within 2 s")) << ran.err;
  EXPECT_EQ(tail.header().request.load(), 0U);
}

TEST(Control, StatusShowsStateEventsAndLosses) {
  const Folder folder;
  FakeTail tail(folder.path("app.traf.tail"));
  tail.header().state = static_cast<uint32_t>(RecordState::kStandby);
  tail.header().generation = 5;
  tail.header().closed = 4;
  tail.header().counters[static_cast<uint8_t>(wire::Counter::k_events)] = 1234567;
  const Ran clean = test::run({kTraceaf, "status", self()});
  EXPECT_EQ(clean.code(), 0) << clean.err;
  EXPECT_TRUE(has(clean.out, ": standby, trace " + folder.path("app.traf") +
                                 ", generation 5 (4 written), 1,234,567 events, losses: none\n"))
      << clean.out;
  tail.header().counters[static_cast<uint8_t>(wire::Counter::k_lost_events)] = 7;
  EXPECT_TRUE(has(test::run({kTraceaf, "status", self()}).out, "losses: lost_events 7"));
}

TEST(Control, ForeignTailsAreRefused) {
  const Folder folder;
  FakeTail tail(folder.path("app.traf.tail"));
  tail.header().pid = 1;
  EXPECT_TRUE(has(test::run({kTraceaf, "on", self()}).err, "made by another process"));
  tail.header().pid = static_cast<uint32_t>(getpid());
  tail.header().version = 99;
  EXPECT_TRUE(has(test::run({kTraceaf, "on", self()}).err, "has version 99, this program knows 1"));
  tail.header().magic = 0;
  EXPECT_TRUE(has(test::run({kTraceaf, "on", self()}).err, "is no tail of a trace"));
  EXPECT_EQ(tail.header().request.load(), 0U);
}

}  // namespace
}  // namespace traceaf
