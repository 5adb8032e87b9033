// The speed of the reader on one file, layer by layer, and its memory.
//   reader FILE [RUNS=5]                          medians over RUNS
//   reader --make FILE EVENTS LIVE [THREADS=1]    writes a trace of births and deaths at LIVE random slots
// Printed: seconds and events a second, by the wall clock and by processor time (which other work on the machine
// disturbs less), of decompressing, of decoding and merging as well, of a whole profile on one processor and on all;
// and the highest resident set.
#include <fmt/format.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "reader/order.h"
#include "reader/read.h"
#include "reader/trace.h"
#include "tests/support/trace_writer.h"

namespace traceaf::reader {
namespace {

using testing::Bytes;
using wire::Ev;

struct Seconds {
  double wall, cpu;
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Seconds median_seconds(int runs, const std::function<void()>& work) {
  std::vector<double> wall;
  std::vector<double> cpu;
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const double cpu_begin = cpu_seconds();
    work();
    wall.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    cpu.push_back(cpu_seconds() - cpu_begin);
  }
  return {median(wall), median(cpu)};
}

void fail(const std::string& message) {
  fmt::print(stderr, "reader: {}\n", message);
  exit(1);
}

void each_generation(const std::string& file, const std::function<void(const Generation&)>& visit) {
  TraceOptions options;
  options.read_ahead = false;
  auto reader = TraceReader::open(file, options);
  if (!reader.ok()) fail(reader.error().text());
  while (const Generation* gen = reader.value()->next()) visit(*gen);
}

uint64_t whole_profile(const std::string& file) {
  auto profile = read_profile(file, {});
  if (!profile.ok()) fail(profile.error().text());
  return profile.value().events;
}

// Runs `work` with this thread, and those it starts, on one processor.
Seconds on_one_processor(int runs, const std::function<void()>& work) {
  cpu_set_t all;
  cpu_set_t one;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
  sched_setaffinity(0, sizeof one, &one);
  const Seconds seconds = median_seconds(runs, work);
  sched_setaffinity(0, sizeof all, &all);
  return seconds;
}

int measure(const std::string& file, int runs) {
  const uint64_t events = whole_profile(file);  // the file is in the page cache from here on
  const auto rate = [&](double seconds) { return static_cast<double>(events) / seconds / 1e6; };
  const auto print = [&](const char* what, const Seconds& seconds) {
    fmt::print("{:<28} {:7.3f} s {:7.1f} M events/s   cpu {:7.3f} s {:7.1f} M events/s\n", what, seconds.wall,
               rate(seconds.wall), seconds.cpu, rate(seconds.cpu));
  };
  fmt::print("{}: {} events, medians of {} runs\n", file, events, runs);
  print("decompress and frame", on_one_processor(runs, [&] { each_generation(file, [](const Generation&) {}); }));
  print("  and decode and merge", on_one_processor(runs, [&] {
          uint64_t seen = 0;
          each_generation(file, [&](const Generation& gen) {
            (void)merge_cursors(
                gen, [](const Event&) {}, [&](const ThreadCursor& cursor) { seen += cursor.event().type; });
          });
          if (seen == 0) fail("no events");
        }));
  print("profile on one processor", on_one_processor(runs, [&] { whole_profile(file); }));
  print("profile on all processors", median_seconds(runs, [&] { whole_profile(file); }));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("highest resident set         {:7.1f} MiB\n", static_cast<double>(usage.ru_maxrss) / 1024);
  return 0;
}

// ---- a trace to read -----------------------------------------------------------------------------------------------

constexpr uint64_t kTypes = 8000;
constexpr uint64_t kEventsAGeneration = 8'000'000;  // some 60 MiB, as a generation of the recorder
constexpr size_t kBatchBytes = 16'000;

struct Slot {
  uint64_t id = 0;  // of the object, 0: none
};

class Maker {
 public:
  Maker(FILE* out, uint64_t live, uint64_t threads) : out_(out), slots_(live), streams_(threads) {
    put(Bytes(wire::kHeader, wire::kHeader + sizeof wire::kHeader));
  }
  void generation(uint64_t number, uint64_t events) {
    testing::TraceWriter tables;
    auto& gen = tables.generation(number, time_);
    gen.process(1000);
    for (uint64_t type = 1; type <= kTypes; ++type) {
      gen.row(1, wire::Row::kSite, {type, 1, 1, 0, 16 + 8 * (type % 40)});
    }
    Bytes plain = gen.unfinished().bytes();
    for (uint64_t m = 1; m <= streams_.size(); ++m) open(m);
    for (uint64_t i = 0; i < events; ++i) event(number, plain);
    for (uint64_t m = 1; m <= streams_.size(); ++m) close(m, number, plain);
    plain.push_back(static_cast<uint8_t>(Ev::kEndOfGeneration));
    put(plain);
  }

 private:
  struct Stream {
    Bytes body;
    uint64_t begin = 0, last = 0;
    bool known = false;
  };
  void put(const Bytes& plain) {
    const Bytes frame = testing::zstd_frame(plain);
    if (fwrite(frame.data(), 1, frame.size(), out_) != frame.size()) fail("cannot write");
  }
  static void append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }
  void open(uint64_t m) {
    Stream& s = streams_[m - 1];
    s.begin = s.last = time_;
    if (s.known) {
      append(s.body, testing::event(Ev::kGoStatus, 0, {m, m, wire::kGoStatusSyscall}));
    } else {
      append(s.body, testing::event(Ev::kGoCreateSyscall, 0, {m}));
    }
    s.known = true;
  }
  void close(uint64_t m, uint64_t number, Bytes& plain) {
    Stream& s = streams_[m - 1];
    append(plain, testing::batch(number, m, s.begin, s.body));
    s.body.clear();
    s.begin = s.last = time_;
  }
  // A death where the slot holds a block, else a birth.
  void event(uint64_t number, Bytes& plain) {
    time_ += 20 + random_() % 200;
    Slot& slot = slots_[random_() % slots_.size()];
    const uint64_t m = 1 + random_() % streams_.size();
    Stream& s = streams_[m - 1];
    if (s.body.size() > kBatchBytes) close(m, number, plain);
    if (slot.id != 0) {
      append(s.body, testing::event(Ev::kHeapObjectFree, time_ - s.last, {slot.id}));
      free_.push_back(slot.id);
      slot.id = 0;
    } else {
      slot.id = 2 * ++next_;
      if (!free_.empty()) {
        slot.id = free_.back();
        free_.pop_back();
        --next_;
      }
      append(s.body, testing::event(Ev::kHeapObjectAlloc, time_ - s.last, {slot.id, 1 + random_() % kTypes}));
    }
    s.last = time_;
  }

  FILE* out_;
  std::mt19937_64 random_{20};
  uint64_t time_ = 1000, next_ = 0;
  std::vector<Slot> slots_;
  std::vector<uint64_t> free_;
  std::vector<Stream> streams_;
};

int make(const std::string& file, uint64_t events, uint64_t live, uint64_t threads) {
  FILE* out = fopen(file.c_str(), "wb");
  if (out == nullptr || live == 0 || threads == 0) fail("cannot write " + file);
  Maker maker(out, 2 * live, threads);
  for (uint64_t number = 1; events != 0; ++number) {
    const uint64_t now = std::min(events, kEventsAGeneration);
    maker.generation(number, now);
    events -= now;
  }
  return fclose(out) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace traceaf::reader

int main(int argc, char** argv) {
  const auto number = [&](int i, uint64_t otherwise) { return argc > i ? strtoull(argv[i], nullptr, 10) : otherwise; };
  if (argc >= 5 && strcmp(argv[1], "--make") == 0) {
    return traceaf::reader::make(argv[2], number(3, 0), number(4, 0), number(5, 1));
  }
  if (argc < 2 || argv[1][0] == '-') {
    fmt::print(stderr, "usage: reader FILE [RUNS=5] | reader --make FILE EVENTS LIVE [THREADS=1]\n");
    return 2;
  }
  return traceaf::reader::measure(argv[1], static_cast<int>(std::max<uint64_t>(1, number(2, 5))));
}
