// Reading ahead on a second thread hands out what reading without it does.
#include <gtest/gtest.h>

#include <random>

#include "reader/trace.h"
#include "tests/support/trace_writer.h"

namespace traceaf::reader {
namespace {

using testing::Bytes;
using testing::TraceWriter;

// Several generations that hardly compress, so that enough is left behind the first one to read ahead.
Bytes large_trace() {
  TraceWriter trace;
  std::mt19937_64 random(1);
  uint64_t time = 2000;
  for (uint64_t number = 1; number <= 6; ++number) {
    auto& gen = trace.generation(number, time);
    gen.process(1000);
    for (int i = 0; i < 40'000; ++i) {
      time += random() % 1000;
      gen.alloc(1 + random() % 3, time, 0x10000 + (random() & 0xfffffffffff8), 1);
    }
  }
  return trace.compressed();
}

struct Seen {
  uint64_t number, offset, batches, plain_bytes;
  size_t hash;
  bool complete;
  std::string fault;
  uint64_t lost_bytes;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> read_all(const Bytes& bytes, bool ahead) {
  TraceOptions options;
  options.read_ahead = ahead;
  uint64_t last_position = 0;
  uint64_t reports = 0;
  options.progress = [&](uint64_t done, uint64_t all) {
    EXPECT_GE(done, last_position);
    EXPECT_EQ(all, bytes.size());
    last_position = done;
    ++reports;
  };
  auto reader = TraceReader::from_bytes(bytes, {}, "t", options);
  EXPECT_TRUE(reader.ok());
  std::vector<Seen> out;
  const auto see = [&](const Generation& gen) {
    const TraceReader& r = *reader.value();
    const std::string_view body(reinterpret_cast<const char*>(gen.bytes.data()), gen.bytes.size());
    out.push_back({gen.number, gen.offset, gen.batches.size(), gen.plain_bytes, std::hash<std::string_view>{}(body),
                   gen.complete, r.fault() ? r.fault()->text() : "", r.lost_bytes()});
  };
  while (const Generation* gen = reader.value()->next()) {
    for (const auto& data : gen->experimental) {
      EXPECT_TRUE(data.bytes.data() >= gen->bytes.data() && data.bytes.data() < gen->bytes.data() + gen->bytes.size());
    }
    see(*gen);
  }
  see(Generation());
  EXPECT_EQ(reader.value()->next(), nullptr) << "the end stays the end";
  EXPECT_GT(reports, 0U);
  return out;
}

TEST(ReadAhead, HandsOutTheSameGenerations) {
  const Bytes trace = large_trace();
  ASSERT_GT(trace.size(), 2U << 20);
  const auto plain = read_all(trace, false);
  EXPECT_EQ(plain.size(), 7U);
  EXPECT_EQ(read_all(trace, true), plain);
}

TEST(ReadAhead, ATraceCutOrDamagedAnywhereEndsTheSameWay) {
  const Bytes trace = large_trace();
  std::mt19937_64 random(2);
  for (int round = 0; round < 12; ++round) {
    Bytes broken = trace;
    if (round % 2 == 0) {
      broken.resize(trace.size() / 2 + random() % (trace.size() / 2));
    } else {
      broken[trace.size() / 2 + random() % (trace.size() / 2)] ^= 0x10;
    }
    const auto plain = read_all(broken, false);
    EXPECT_EQ(read_all(broken, true), plain) << round;
  }
}

TEST(ReadAhead, MayBeGivenUpAtAnyMoment) {
  const Bytes trace = large_trace();
  for (int taken = 0; taken < 6; ++taken) {
    auto reader = TraceReader::from_bytes(trace, {}, "t");
    ASSERT_TRUE(reader.ok());
    for (int i = 0; i < taken; ++i) ASSERT_NE(reader.value()->next(), nullptr);
  }
}

}  // namespace
}  // namespace traceaf::reader
