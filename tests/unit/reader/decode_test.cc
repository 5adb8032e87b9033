// The fast decoder of events about objects against the plain one.
#include "reader/decode.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "emitter/wire/varint.h"

namespace traceaf::reader {
namespace {

struct Outcome {
  std::vector<std::vector<uint64_t>> events;
  DecodeFault fault = DecodeFault::kNone;
  bool operator==(const Outcome&) const = default;
};

std::vector<uint64_t> as_list(const Event& e) { return {e.time, e.type, e.at, e.args[0], e.args[1], e.args[2]}; }

Outcome decode(const std::vector<uint8_t>& body, uint64_t time, bool fast) {
  Outcome out;
  const uint8_t* at = body.data();
  const uint8_t* const end = at + body.size();
  while (at != end) {
    Event few[7];
    Event* next = few;
    if (fast) decode_objects(body.data(), at, end, time, next, std::end(few));
    for (const Event* e = few; e != next; ++e) out.events.push_back(as_list(*e));
    if (at == end || next == std::end(few)) continue;
    Event event;
    event.at = static_cast<uint32_t>(at - body.data());
    at = decode_event(at, end, time, event, &out.fault);
    if (at == nullptr) break;
    out.events.push_back(as_list(event));
  }
  return out;
}

// An integer of random length, now and then padded to more bytes than it needs.
void put_random(std::vector<uint8_t>& out, std::mt19937_64& random) {
  uint8_t bytes[wire::kMaxVarint];
  const uint64_t value = random() >> (random() % 16 == 0 ? random() % 64 : 40 + random() % 24);
  uint8_t* end = wire::put_varint(bytes, value);
  if (random() % 16 == 0) {
    while (end - bytes < static_cast<ptrdiff_t>(1 + random() % wire::kMaxVarint)) {
      end[-1] |= 0x80;
      *end++ = 0;
    }
  }
  out.insert(out.end(), bytes, end);
}

std::vector<uint8_t> random_body(std::mt19937_64& random) {
  std::vector<uint8_t> out;
  for (uint64_t n = random() % 60; n != 0; --n) {
    const uint64_t pick = random() % 24;
    const auto& spec = wire::kEvents[random() % std::size(wire::kEvents)];
    const auto type = static_cast<uint8_t>(
        pick == 0 ? spec.number : static_cast<uint64_t>(wire::Ev::kHeapObject) + (pick == 1 ? 0 : 1 + random() % 2));
    out.push_back(type);
    for (unsigned i = 0; i < kTimedIntegers[type]; ++i) put_random(out, random);
  }
  return out;
}

TEST(Decode, TheFastWayEqualsThePlainOne) {
  std::mt19937_64 random(7);
  size_t whole = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<uint8_t> body = random_body(random);
    if (round % 4 == 1 && !body.empty()) body[random() % body.size()] ^= static_cast<uint8_t>(1U << random() % 8);
    if (round % 4 == 2 && !body.empty()) body.resize(random() % body.size());
    const uint64_t start = round % 50 == 0 ? ~uint64_t{0} - random() % 100'000 : random() >> 20;
    const Outcome plain = decode(body, start, false);
    ASSERT_EQ(decode(body, start, true), plain) << "round " << round;
    whole += plain.fault == DecodeFault::kNone ? 1 : 0;
  }
  EXPECT_GT(whole, 5000U);
}

TEST(Decode, RunsOfObjectsAreTakenWhole) {
  std::vector<uint8_t> body;
  for (uint64_t i = 0; i < 100; ++i) {
    body.push_back(static_cast<uint8_t>(wire::Ev::kHeapObjectAlloc));
    uint8_t bytes[3 * wire::kMaxVarint];
    uint8_t* end = wire::put_varint(wire::put_varint(wire::put_varint(bytes, 200 + i), 1'000'000 + i), i);
    body.insert(body.end(), bytes, end);
  }
  std::vector<Event> events(100);
  const uint8_t* at = body.data();
  uint64_t time = 0;
  Event* out = events.data();
  decode_objects(body.data(), at, body.data() + body.size(), time, out, events.data() + events.size());
  const auto taken = static_cast<size_t>(out - events.data());
  EXPECT_LT(static_cast<size_t>(body.data() + body.size() - at), DecodeWindow::kReads) << "all but the end";
  ASSERT_GT(taken, 85U);
  for (size_t i = 0; i < taken; ++i) {
    EXPECT_EQ(events[i].args[0], 1'000'000 + i);
    EXPECT_EQ(events[i].args[1], i);
  }
  EXPECT_EQ(time, events[taken - 1].time);
}

}  // namespace
}  // namespace traceaf::reader
