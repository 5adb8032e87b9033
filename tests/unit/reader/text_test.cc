// The text form: what it looks like, and that nothing is lost on the way there and back.
#include "reader/text.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/trace_writer.h"

namespace traceaf::reader {
namespace {

using testing::Bytes;
using testing::TraceWriter;
using wire::Entry;
using wire::Ev;

std::string to_text(const Bytes& bytes, Failure* failure = nullptr) {
  std::string out;
  Failure wrong = bytes_to_text(bytes, "t", [&](std::string_view piece) {
    out += piece;
    return true;
  });
  if (failure != nullptr) {
    *failure = wrong;
  } else {
    EXPECT_FALSE(wrong) << wrong->text();
  }
  return out;
}

Bytes to_bytes(const std::string& text) {
  auto bytes = text_to_bytes(text, "t");
  EXPECT_TRUE(bytes.ok()) << (bytes.ok() ? "" : bytes.error().text());
  return bytes.ok() ? bytes.value() : Bytes();
}

std::string error_of(const std::string& text) {
  auto bytes = text_to_bytes(text, "t");
  return bytes.ok() ? "" : bytes.error().text();
}

Bytes rich_trace() {
  TraceWriter trace;
  auto& gen = trace.generation(1);
  gen.process(900)
      .module(1, 1, 0x400000, 0x500000, "/bin/\"app\"\n\xff")
      .node(8, 1, 1, 0x123)
      .thread(1, 77, 1000, 1, "main");
  gen.site(1, 8, Entry::k_malloc, 24).type(9, 1, 2, "other");
  gen.counters(1500, {{wire::Counter::k_lost_events, 3}, {wire::Counter::k_rss_bytes, 8192}});
  gen.row_bytes(1, 200, {1, 2, 3});  // a tag of the future
  Bytes longer;
  for (const uint64_t v : {2000, 1, 0, 5}) testing::put(longer, static_cast<uint64_t>(v));  // End with a fourth field
  gen.row_bytes(1, static_cast<uint64_t>(wire::Row::kEnd), longer);
  gen.row(1, wire::Row::kSite, {3, 8});  // Site of an older writer, cut short
  gen.alloc(1, 2000, 0x10010, 1).free(1, 2100, 0x10010).span(Ev::kSpanAlloc, 1, 2101, 0x11000, 3);
  gen.raw(testing::batch(1, wire::kNoThread, 0, {4, 5, 1, 3, 'a', '"', 0xc3}));
  gen.raw(testing::batch(1, wire::kNoThread, 0, {2, 3, 1, 2, 9, 1, 1, 7, 10, 1, 1, 8}));
  gen.raw(testing::batch(1, wire::kNoThread, 0, {6, 7, 9, 1, 2, 3, 1}));
  gen.raw(testing::experimental_batch(1, 4, 0, {}));
  gen.raw(testing::experimental_batch(1, 4, 0, {99, 0, 0xff}, 7));
  trace.generation(2, 5000).alloc(1, 6000, 0x10010, 1);
  return trace.bytes();
}

TEST(Text, ReadsAsGoWritesIt) {
  TraceWriter trace;
  trace.generation(1).alloc(1, 2000, 0x10010, 5);
  EXPECT_EQ(to_text(trace.bytes()),
            "Trace Go1.26\n"
            "EventBatch gen=1 m=18446744073709551615 time=1000 size=19\n"
            "Sync\n"
            "Frequency freq=1000000000\n"
            "ClockSnapshot dt=0 mono=1001000 sec=1700000001 nsec=1000\n"
            "ExperimentalBatch exp=1 gen=1 m=18446744073709551615 time=1000\n"
            "\tkind=1\n"
            "\tInfo min_addr=65536 page_size=4096 min_align=8 fixed_stack=4096\n"
            "EventBatch gen=1 m=1 time=2000 size=7\n"
            "GoCreateSyscall dt=0 new_g=1\n"
            "HeapObjectAlloc dt=0 object_id=2 type_id=5\n"
            "EndOfGeneration\n");
}

TEST(Text, RowsAreDecoded) {
  const std::string text = to_text(rich_trace());
  for (const char* part :
       {"\tProcess pid=4242 ppid=1 start_time=900 start_wall_ns=1700000000000000000 clock=0 live=1 image=1 "
        "parent_pid=0 "
        "exe=\"/bin/app\" cmdline=\"app\\x00-x\\x00\" options=\"1\" version=\"0.1\" host=\"host\"\n",
        "\tModule id=1 flags=1 start=4194304 end=5242880 bias=4194304 build_id=\"\\xab\\xcd\" "
        "path=\"/bin/\\\"app\\\"\\n\\xff\"\n",
        "\tNode id=8 parent=1 module=1 offset=291\n", "\tThread m=1 tid=77 birth_time=1000 flags=1 ",
        "\tSite type_id=1 node=8 entry=1 align_log2=0 size=24\n",
        "\tCounters time=1500 npairs=2 lost_events=3 rss_bytes=8192\n", "\tRow tag=200 data=\"\\x01\\x02\\x03\"\n",
        "\tEnd time=2000 reason=1 status=0 extra=\"\\x05\"\n", "\tSite type_id=3 node=8\n",
        "\tType id=9 address=1 size=2 pointer_bytes=0 name=\"other\"\n", "String id=1\n\tdata=\"a\\\"\\xc3\"\n",
        "Stack id=1 nframes=2\n\tpc=9 func=1 file=1 line=7\n\tpc=10 func=1 file=1 line=8\n",
        "CPUSample time=9 m=1 p=2 g=3 stack=1\n", "\tdata=\"\"\n",
        "ExperimentalBatch exp=7 gen=1 m=4 time=0\n\tdata=\"c\\x00\\xff\"\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nnot in\n" << text;
  }
}

TEST(Text, BothWaysIsTheIdentity) {
  const Bytes bytes = rich_trace();
  const std::string text = to_text(bytes);
  EXPECT_EQ(to_bytes(text), bytes);
  EXPECT_EQ(to_text(to_bytes(text)), text);
}

TEST(Text, CompressedTracesGiveTheSameText) {
  TraceWriter trace;
  trace.generation(1).alloc(1, 2000, 0x10010, 5);
  EXPECT_EQ(to_text(trace.compressed()), to_text(trace.bytes()));
}

TEST(Text, PaddedIntegersKeepTheirWidth) {
  Bytes bytes(wire::kHeader, wire::kHeader + sizeof wire::kHeader);
  // Go reserves ten bytes for the size and fills them in later.
  const Bytes batch = {1,    1,    1, 0x64, 0x84, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                       0x80, 0x80, 0, 132,  0x80, 0,    2,    0x81, 0x80, 0};
  bytes.insert(bytes.end(), batch.begin(), batch.end());
  bytes[bytes.size() - 17] = 0x87;  // seven bytes of body
  // A row whose length is padded: shown as data.
  const Bytes rows = testing::experimental_batch(1, 1, 5, {2, 7, 0x83, 0, 1, 1, 0});
  bytes.insert(bytes.end(), rows.begin(), rows.end());
  bytes.push_back(52);
  Failure failure;
  const std::string text = to_text(bytes, &failure);
  EXPECT_FALSE(failure) << failure->text();
  EXPECT_NE(text.find("size=7/10\n"), std::string::npos) << text;
  EXPECT_NE(text.find("HeapObjectAlloc dt=0/2 object_id=2 type_id=1/3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("data=\"\\x02\\x07\\x83"), std::string::npos) << text;
  EXPECT_EQ(to_bytes(text), bytes);
}

TEST(Text, UndecodablePartsBecomeBytesAndAreReported) {
  const Bytes whole = rich_trace();
  std::mt19937_64 random(3);
  size_t faults = 0;
  for (int round = 0; round < 600; ++round) {
    Bytes bytes = whole;
    const size_t hits = 1 + random() % 3;
    for (size_t i = 0; i < hits; ++i) bytes[16 + random() % (bytes.size() - 16)] = static_cast<uint8_t>(random());
    if (random() % 3 == 0) bytes.resize(16 + random() % (bytes.size() - 16));
    Failure failure;
    const std::string text = to_text(bytes, &failure);
    ASSERT_EQ(to_bytes(text), bytes) << text;
    faults += failure ? 1 : 0;
  }
  EXPECT_GT(faults, 300U);
}

TEST(Text, HandWrittenTracesMayLeaveSizesOutAndHaveComments) {
  const Bytes bytes = to_bytes(
      "# a comment\n"
      "\n"
      "Trace Go1.26\n"
      "EventBatch gen=1 m=0xffffffffffffffff time=5\n"
      "Sync\n"
      "  # another\n"
      "Frequency freq=7\n"
      "ExperimentalBatch exp=1 gen=1 m=1 time=5\n"
      "\tkind=2\n"
      "\tNode id=8 parent=1 module=0 offset=0x10\n"
      "\tNode id=9 parent=9 module=0 offset=0x20\n"
      "EndOfGeneration\n");
  Bytes expected(wire::kHeader, wire::kHeader + sizeof wire::kHeader);
  for (const Bytes& part :
       {testing::batch(1, wire::kNoThread, 5, {50, 8, 7}),
        testing::experimental_batch(1, 1, 5, {2, 4, 4, 16, 2, 0, 16, 4, 4, 2, 16, 0, 32}), Bytes{52}}) {
    expected.insert(expected.end(), part.begin(), part.end());
  }
  EXPECT_EQ(bytes, expected);
}

TEST(Text, WrongSizesAreKeptAsWritten) {
  const Bytes bytes =
      to_bytes("Trace Go1.26\nEventBatch gen=1 m=1 time=0 size=65537\nHeapObjectFree dt=0 object_id=1\n");
  EXPECT_EQ(Bytes(bytes.begin() + 16, bytes.end()), (Bytes{1, 1, 1, 0, 0x81, 0x80, 4, 133, 0, 1}));
}

TEST(Text, ErrorsNameTheLine) {
  const std::string head = "Trace Go1.26\nEventBatch gen=1 m=1 time=5\n";
  const auto refuses = [](const std::string& text, const std::string& place, const std::string& part) {
    const std::string error = error_of(text);
    EXPECT_EQ(error.substr(0, place.size()), place) << error;
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  refuses("", "t:0:", "Trace Go1.26");
  refuses("Trace Go1.25\n", "t:1:", "Trace Go1.26");
  refuses(head + "Nonsense dt=1\n", "t:3:", "found Nonsense");
  refuses(head + "HeapObjectFree dt=1\n", "t:3:", "expected object_id=NUMBER");
  refuses(head + "HeapObjectFree dt=1 type_id=2\n", "t:3:", "expected object_id=NUMBER, found type_id");
  refuses(head + "HeapObjectFree dt=1 object_id=2 more=3\n", "t:3:", "found more");
  refuses(head + "HeapObjectFree dt=18446744073709551616 object_id=2\n", "t:3:", "64-bit integer");
  refuses(head + "HeapObjectFree dt=300/1 object_id=2\n", "t:3:", "width from 2 to 10");
  refuses(head + "\tdata=\"x\"\n", "t:3:", "no indented line");
  refuses("Trace Go1.26\nHeapObjectFree dt=1 object_id=1\n", "t:2:", "expected a batch");
  refuses("Trace Go1.26\nExperimentalBatch exp=1 gen=1 m=1 time=1\n\tkind=2\n\tRubbish a=1\n", "t:4:", "found Rubbish");
  refuses("Trace Go1.26\nExperimentalBatch exp=1 gen=1 m=1 time=1\n\tkind=2\n\tNode id=1 father=2\n",
          "t:4:", "expected parent=NUMBER");
  refuses(head + "String id=1\n\tdata=\"abc\n", "t:4:", "closing quote");
  refuses(head + "String id=1\nSync\n", "t:4:", "below a String");
}

TEST(Text, SinkCanStopTheConversion) {
  TraceWriter trace;
  auto& gen = trace.generation(1);
  for (uint64_t i = 0; i < 30000; ++i) gen.alloc(1, 2000 + i, 0x10010 + 8 * i, 5);
  int calls = 0;
  EXPECT_FALSE(bytes_to_text(trace.bytes(), "t", [&](std::string_view) {
    ++calls;
    return false;
  }));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace traceaf::reader
