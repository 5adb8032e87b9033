// TRACEALLOCFREE's parser: what is accepted, what wins, what is refused and how that is said.
#include "emitter/options.h"

#include <string>

#include <gtest/gtest.h>

namespace traceaf::emitter {
namespace {

Options parsed(const char* text) {
  Options options;
  const OptionError error = parse_options(text, &options);
  EXPECT_EQ(error.accepted, nullptr) << text << ": " << error.item;
  return options;
}

TEST(Options, UnsetAndEmptyMeanOff) {
  EXPECT_EQ(parsed(nullptr).state, wire::RecordState::kOff);
  EXPECT_EQ(parsed("").state, wire::RecordState::kOff);
  EXPECT_EQ(parsed(",,").state, wire::RecordState::kOff);
  EXPECT_EQ(parsed("out=x").state, wire::RecordState::kOff);
}

TEST(Options, RightMostWins) {
  EXPECT_EQ(parsed("0,1").state, wire::RecordState::kOn);
  EXPECT_EQ(parsed("1,standby,0").state, wire::RecordState::kOff);
  EXPECT_EQ(parsed("1,depth=5,depth=7").depth, 7u);
  EXPECT_STREQ(parsed("out=a,1,out=b").out, "b");
}

TEST(Options, EveryNameIsUnderstood) {
  const Options o = parsed(
      "standby,out=/tmp/%p.traf,compress=none,buffer=64M,generation=0.25,generation_size=1.5M,depth=40,stacks=both,"
      "follow=0,guard=1");
  EXPECT_EQ(o.state, wire::RecordState::kStandby);
  EXPECT_STREQ(o.out, "/tmp/%p.traf");
  EXPECT_FALSE(o.compress);
  EXPECT_EQ(o.buffer_bytes, uint64_t{64} << 20);
  EXPECT_EQ(o.generation_ns, 250000000u);
  EXPECT_EQ(o.generation_bytes, uint64_t{3} << 19);
  EXPECT_EQ(o.depth, 40u);
  EXPECT_EQ(o.stacks, Stacks::kBoth);
  EXPECT_FALSE(o.follow);
  EXPECT_TRUE(o.guard);
  EXPECT_EQ(parsed("stacks=none").stacks, Stacks::kNone);
  EXPECT_EQ(parsed("stacks=both,stacks=alloc").stacks, Stacks::kAlloc);
  EXPECT_EQ(parsed("buffer=4194304").buffer_bytes, uint64_t{4} << 20);
}

TEST(Options, BadItemsAreNamed) {
  const struct {
    const char* text;
    const char* item;
    const char* accepted;
  } cases[] = {
      {"1,deph=4", "deph=4", "depth=N"},
      {"yes", "yes", "standby"},
      {"1,depth=0", "depth=0", "1 to 4096"},
      {"1,depth=x", "depth=x", "1 to 4096"},
      {"compress=gzip", "compress=gzip", "zstd or none"},
      {"buffer=1K", "buffer=1K", "1M to 4G"},
      {"buffer=5X", "buffer=5X", "1M to 4G"},
      {"buffer=", "buffer=", "1M to 4G"},
      {"generation=0", "generation=0", "0.01"},
      {"generation=1.2.3", "generation=1.2.3", "0.01"},
      {"generation_size=99999999999999999999G", "generation_size=99999999999999999999G", "64K"},
      {"stacks=free", "stacks=free", "both"},
      {"follow=2", "follow=2", "0 or 1"},
      {"out=", "out=", "file name"},
      {"1=1", "1=1", "standby"},
  };
  for (const auto& c : cases) {
    Options options;
    const OptionError error = parse_options(c.text, &options);
    ASSERT_NE(error.accepted, nullptr) << c.text;
    EXPECT_STREQ(error.item, c.item);
    EXPECT_NE(std::string(error.accepted).find(c.accepted), std::string::npos) << error.accepted;
  }
}

TEST(Options, LongTextIsRefusedNotCut) {
  const std::string name(1023, 'a');
  EXPECT_EQ(std::string(parsed(("out=" + name).c_str()).out), name);
  Options options;
  EXPECT_NE(parse_options(("out=" + name + "b").c_str(), &options).accepted, nullptr);
}

}  // namespace
}  // namespace traceaf::emitter
