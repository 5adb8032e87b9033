// Recovery from the tail of a killed, ended or still living program.
#include "reader/tail.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>

#include "reader/read.h"
#include "tests/support/trace_writer.h"

namespace traceaf::reader {
namespace {

using testing::Bytes;
using testing::TailWriter;
using testing::TraceWriter;
using wire::Entry;
using wire::Ev;

constexpr uint64_t kM = 1;

// Body of a batch of n births from object id `first` on, 16 bytes apart, one per 10 units; the base time is the
// first's.
Bytes births(uint64_t first, uint64_t n, uint64_t type = 1) {
  Bytes body;
  for (uint64_t i = 0; i < n; ++i) {
    const Bytes e = testing::event(Ev::kHeapObjectAlloc, i == 0 ? 0 : 10, {first + 2 * i, type});
    body.insert(body.end(), e.begin(), e.end());
  }
  return body;
}

Bytes row(wire::Row tag, std::initializer_list<uint64_t> fields) {
  const reader::RowLayout& layout = *reader::find_row(static_cast<uint64_t>(tag));
  reader::RowDifferences differences;
  Bytes payload;
  size_t i = 0;
  for (const uint64_t field : fields) testing::put(payload, differences.encode(layout, i++, field));
  Bytes out;
  testing::put(out, static_cast<uint64_t>(tag));
  testing::put(out, payload.size());
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

Bytes site_rows() {
  Bytes body{wire::kBatchRows};
  const Bytes site = row(wire::Row::kSite, {1, 0, static_cast<uint64_t>(Entry::k_malloc), 0, 16});
  body.insert(body.end(), site.begin(), site.end());
  return body;
}

// An output with generation 1 whole (3 births) and, when `partial`, a batch of generation 2 (2 births at time 5000).
Bytes output(bool partial) {
  TraceWriter trace;
  auto& gen = trace.generation(1);
  gen.process(0).site(1, 0, Entry::k_malloc, 16);
  for (uint64_t i = 0; i < 3; ++i) gen.alloc(kM, 2000 + i, 0x10000 + 16 * i, 1);
  if (partial) trace.generation(2, 4000, true).unfinished().raw(testing::batch(2, kM, 5000, births(100, 2)));
  return trace.bytes();
}

TailWriter tail() {
  TailWriter out(8);
  out.clock(1'000'000'000, 0).closed(1);
  return out;
}

Profile read(const Bytes& trace, const Bytes& tail_bytes) {
  auto result = read_profile_bytes(trace, tail_bytes, "t");
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().text());
  return result.ok() ? std::move(result.value()) : Profile();
}

TEST(Tail, CompletesTheGenerationThatTheOutputHasInPart) {
  TailWriter t = tail();
  t.slot(0, wire::kSlotFull, wire::kSlotEvents, 2, kM, 6000, births(200, 4));
  t.slot(1, wire::kSlotFilling, wire::kSlotRows, 2, kM, 4500, site_rows());
  const Profile p = read(output(true), t.bytes());
  EXPECT_EQ(p.allocated.count, 3U + 2 + 4);
  EXPECT_EQ(p.unknown_types, 0U);
  EXPECT_TRUE(p.ending.from_tail);
  EXPECT_FALSE(p.ending.complete);
  EXPECT_NE(p.ending.note.find("last word is missing"), std::string::npos) << p.ending.note;
  EXPECT_EQ(p.ending.lost_bytes, 0U);
  ASSERT_EQ(p.generations.size(), 2U);
  EXPECT_FALSE(p.generations[1].complete);
  EXPECT_EQ(p.generations[1].last_ns, 6030U);
}

TEST(Tail, BatchesInBothCountOnce) {
  TailWriter t = tail();
  // The slot is still full though its batch (gen, m, time, kind) was written; the rows batch of the same time is
  // another.
  t.slot(0, wire::kSlotFull, wire::kSlotEvents, 2, kM, 5000, births(100, 2));
  t.slot(1, wire::kSlotFull, wire::kSlotRows, 2, kM, 5000, site_rows());
  t.slot(2, wire::kSlotFull, wire::kSlotEvents, 2, kM + 1, 5000, births(300, 1));
  const Profile p = read(output(true), t.bytes());
  EXPECT_EQ(p.allocated.count, 3U + 2 + 1);
  EXPECT_EQ(p.double_births, 0U);
}

TEST(Tail, SlotsOfWholeGenerationsAreIgnored) {
  TailWriter t = tail();
  t.slot(0, wire::kSlotFull, wire::kSlotEvents, 1, kM, 9000, births(500, 3));
  const Profile p = read(output(false), t.bytes());
  EXPECT_EQ(p.allocated.count, 3U);
}

TEST(Tail, HoldsAWholeFurtherGeneration) {
  TailWriter t = tail();
  t.slot(3, wire::kSlotFilling, wire::kSlotEvents, 3, kM, 8000, births(400, 2));
  t.slot(0, wire::kSlotFull, wire::kSlotEvents, 2, kM, 6000, births(200, 4));
  t.slot(1, wire::kSlotFilling, wire::kSlotRows, 2, kM, 4500, site_rows());
  t.slot(2, wire::kSlotFilling, wire::kSlotRows, 3, kM, 7500, site_rows());
  const Profile p = read(output(false), t.bytes());
  EXPECT_EQ(p.allocated.count, 3U + 4 + 2);
  ASSERT_EQ(p.generations.size(), 3U);
  EXPECT_EQ(p.generations[2].number, 3U);
  EXPECT_EQ(p.duration_ns, 6010U);
}

TEST(Tail, AloneWithTheHeaderOfTheOutput) {
  const Bytes header(wire::kHeader, wire::kHeader + sizeof wire::kHeader);
  TailWriter t = tail();
  t.closed(0).clock(2'000'000'000, 100);
  t.slot(0, wire::kSlotFilling, wire::kSlotEvents, 1, kM, 300, births(2, 2));
  t.slot(1, wire::kSlotFilling, wire::kSlotRows, 1, kM, 200, site_rows());
  const Profile p = read(header, t.bytes());
  EXPECT_EQ(p.allocated.count, 2U);
  EXPECT_EQ(p.clock_freq, 2'000'000'000U);
  ASSERT_EQ(p.live_blocks.size(), 2U);
  EXPECT_EQ(p.live_blocks[0].address, testing::kMin + 16) << "the base comes from the tail's header";
  EXPECT_EQ(p.live_blocks[0].birth_ns, 100U) << "200 units of half a ns after the start";
  EXPECT_EQ(p.process.pid, 4242U);
}

TEST(Tail, EndedTailMakesTheTraceWhole) {
  for (const auto reason : {wire::EndReason::kExit, wire::EndReason::kFastExit, wire::EndReason::kExec}) {
    TailWriter t = tail();
    t.ended(reason);
    t.slot(0, wire::kSlotFull, wire::kSlotEvents, 2, kM, 6000, births(200, 4));
    const Profile p = read(output(true), t.bytes());
    EXPECT_TRUE(p.ending.complete) << p.ending.note;
    EXPECT_TRUE(p.ending.note.empty());
    EXPECT_EQ(p.ending.reason, reason);
    EXPECT_TRUE(p.ending.from_tail);
  }
  TailWriter t = tail();
  t.ended(wire::EndReason::kDisk);
  const Profile p = read(output(true), t.bytes());
  EXPECT_FALSE(p.ending.complete);
  EXPECT_NE(p.ending.note.find("could not be written"), std::string::npos) << p.ending.note;
}

TEST(Tail, GapBetweenOutputAndTailIsNotWhole) {
  TailWriter t = tail();
  t.ended(wire::EndReason::kExit).closed(4);
  t.slot(0, wire::kSlotFull, wire::kSlotEvents, 5, kM, 60000, births(200, 4));
  const Profile p = read(output(false), t.bytes());
  EXPECT_FALSE(p.ending.complete);
  EXPECT_NE(p.ending.note.find("generations up to 4"), std::string::npos) << p.ending.note;
  EXPECT_EQ(p.allocated.count, 7U);
}

TEST(Tail, CountersOfTheHeaderAreTheLatest) {
  TailWriter t = tail();
  t.counter(wire::Counter::k_lost_events, 17);
  const Profile p = read(output(true), t.bytes());
  EXPECT_EQ(p.counters[static_cast<size_t>(wire::Counter::k_lost_events)], 17U);
}

TEST(Tail, FreeAndJustClaimedSlotsAreSkipped) {
  TailWriter t = tail();
  t.slot(0, wire::kSlotFree, wire::kSlotEvents, 2, kM, 6000, births(200, 4));
  t.slot(1, wire::kSlotFilling, wire::kSlotEvents, 0, 0, 0, {});
  const Profile p = read(output(true), t.bytes());
  EXPECT_EQ(p.allocated.count, 5U);
  EXPECT_FALSE(p.ending.from_tail);
}

TEST(Tail, DamagedSlotsAreLeftOutAndNamed) {
  const size_t slot1 = wire::kTailHeaderBytes + wire::kSlotBytes;
  const auto damaged = [&](size_t field, uint32_t value) {
    TailWriter t = tail();
    t.ended(wire::EndReason::kExit);
    t.slot(0, wire::kSlotFull, wire::kSlotEvents, 2, kM, 6000, births(200, 4));
    t.slot(1, wire::kSlotFull, wire::kSlotEvents, 2, kM, 7000, births(300, 1));
    t.poke32(slot1 + field, value);
    const Profile p = read(output(true), t.bytes());
    EXPECT_EQ(p.allocated.count, 5U + 4) << p.ending.note;
    EXPECT_FALSE(p.ending.complete);
    return p.ending.note;
  };
  EXPECT_NE(damaged(offsetof(wire::SlotHeader, state), 9).find("slot state"), std::string::npos);
  EXPECT_NE(damaged(offsetof(wire::SlotHeader, kind), 7).find("slot kind"), std::string::npos);
  EXPECT_NE(damaged(offsetof(wire::SlotHeader, used), 0xffffffff).find("at most 16320 bytes"), std::string::npos);
  const std::string note = damaged(offsetof(wire::SlotHeader, gen), 0);
  EXPECT_NE(note.find("t.tail: offset " + std::to_string(slot1)), std::string::npos) << note;
}

TEST(Tail, UnusableTailsAreNamedAndTheOutputIsRead) {
  const auto note = [&](Bytes bytes) {
    const Profile p = read(output(true), bytes);
    EXPECT_EQ(p.allocated.count, 5U);
    EXPECT_FALSE(p.ending.complete);
    return p.ending.note;
  };
  EXPECT_NE(note(Bytes(100)).find("at least 4096 bytes"), std::string::npos);
  EXPECT_NE(note(TailWriter(1).poke64(0, 1).bytes()).find("magic"), std::string::npos);
  EXPECT_NE(note(TailWriter(1).poke32(8, 2).bytes()).find("version 1, found 2"), std::string::npos);
  EXPECT_NE(note(TailWriter(1).clock(0, 0).bytes()).find("frequency"), std::string::npos);
  Bytes cut = tail().slot(0, wire::kSlotFull, wire::kSlotEvents, 2, kM, 6000, births(200, 4)).bytes();
  cut.resize(wire::kTailHeaderBytes + wire::kSlotHeaderBytes + 2);
  const std::string cut_note = note(cut);
  EXPECT_NE(cut_note.find("room for 1"), std::string::npos) << cut_note;
}

TEST(Tail, FileBesideTheTraceIsFoundAndCanBeLeftOut) {
  char folder[] = "/tmp/traceaf-tail-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/a.traf";
  const auto write = [](const std::string& file, const Bytes& bytes) {
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  write(path, output(true));
  auto without = read_profile(path, {});
  ASSERT_TRUE(without.ok());
  EXPECT_EQ(without.value().allocated.count, 5U);
  EXPECT_NE(without.value().ending.note.find("end of generation 2"), std::string::npos) << without.value().ending.note;

  write(path + ".tail", tail().slot(0, wire::kSlotFull, wire::kSlotEvents, 2, kM, 6000, births(200, 4)).bytes());
  auto with = read_profile(path, {});
  ASSERT_TRUE(with.ok());
  EXPECT_EQ(with.value().allocated.count, 9U);
  ReadOptions no_tail;
  no_tail.use_tail = false;
  auto left_out = read_profile(path, no_tail);
  ASSERT_TRUE(left_out.ok());
  EXPECT_EQ(left_out.value().allocated.count, 5U);
  EXPECT_EQ(system(("rm -r " + std::string(folder)).c_str()), 0);
}

TEST(Tail, RandomDamageIsSurvived) {
  TailWriter t = tail();
  for (uint32_t i = 0; i < 6; ++i) {
    t.slot(i, i % 2 ? wire::kSlotFull : wire::kSlotFilling, i == 3 ? wire::kSlotRows : wire::kSlotEvents, 2 + i / 3,
           1 + i % 2, 6000 + i, i == 3 ? site_rows() : births(200 + 100 * i, 4));
  }
  const Bytes trace = output(true);
  uint64_t state = 7;
  for (int round = 0; round < 400; ++round) {
    Bytes bytes = t.bytes();
    for (int hit = 0; hit < 6; ++hit) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const size_t slot = wire::kTailHeaderBytes + ((state >> 40) % 6) * wire::kSlotBytes;
      const size_t at = (state & 1) != 0 ? (state >> 20) % 200 : slot + (state >> 20) % 100;
      bytes[at] = static_cast<uint8_t>(state >> 50);
    }
    auto result = read_profile_bytes(trace, bytes, "t");
    ASSERT_TRUE(result.ok());
    ASSERT_GE(result.value().allocated.count, 3U);
  }
}

}  // namespace
}  // namespace traceaf::reader
