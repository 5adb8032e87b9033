// Numbers, names and words as people read them.
#include <gtest/gtest.h>

#include "reader/views/escape.h"
#include "reader/views/function_name.h"
#include "reader/views/units.h"

namespace traceaf::reader::views {
namespace {

TEST(Units, BytesAreBinaryWithOneDecimal) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(1048575), "1.0 MiB");  // not "1024.0 KiB"
  EXPECT_EQ(format_bytes(uint64_t{35} << 20), "35.0 MiB");
  EXPECT_EQ(format_bytes(~uint64_t{0}), "16.0 EiB");
}

TEST(Units, CountsAreGrouped) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(~uint64_t{0}), "18,446,744,073,709,551,615");
  EXPECT_EQ(count_of(1, "block"), "1 block");
  EXPECT_EQ(count_of(0, "batch", "batches"), "0 batches");
}

TEST(Units, DurationsKeepThreeDigits) {
  EXPECT_EQ(format_duration(0), "0 ns");
  EXPECT_EQ(format_duration(999), "999 ns");
  EXPECT_EQ(format_duration(1234), "1.23 us");
  EXPECT_EQ(format_duration(45600000), "45.6 ms");
  EXPECT_EQ(format_duration(999499999), "999 ms");
  EXPECT_EQ(format_duration(999999999), "1.00 s");
  EXPECT_EQ(format_duration(100000000000), "100 s");
  EXPECT_EQ(format_duration(123000000000), "2 min 03 s");
  EXPECT_EQ(format_duration(uint64_t{7380} * 1000000000), "2 h 03 min");
}

TEST(Units, SharesNeverHideSomething) {
  EXPECT_EQ(format_share(0, 10), "0.0%");
  EXPECT_EQ(format_share(1, 100000), "<0.1%");
  EXPECT_EQ(format_share(1, 3), "33.3%");
  EXPECT_EQ(format_share(5, 5), "100.0%");
  EXPECT_EQ(format_share(0, 0), "-");
}

TEST(Units, WallTimeIsUtc) {
  EXPECT_EQ(format_wall_time(uint64_t{1700000000} * 1000000000), "2023-11-14 22:13:20 UTC");
  EXPECT_EQ(format_wall_time(0), "");
}

TEST(Escape, TerminalSeesNoControlCharacters) {
  EXPECT_EQ(terminal_safe("plain text"), "plain text");
  EXPECT_EQ(terminal_safe("a\x1b[31mb\tc\n"), "a\\x1b[31mb\\x09c\\x0a");
  EXPECT_EQ(terminal_safe(std::string_view("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(terminal_safe("\xc2\x9b"
                          "31m"),
            "\\xc2\\x9b31m");  // C1: CSI in one character
  EXPECT_EQ(terminal_safe("\xe2\x80\xae"
                          "cod"),
            "\\xe2\\x80\\xaecod");  // override of direction
  EXPECT_EQ(terminal_safe("gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x98\x80"),
            "gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x98\x80");
}

TEST(Escape, InvalidUtf8BecomesBytes) {
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a\\xffb");
  EXPECT_EQ(valid_utf8("\xc3"), "\\xc3");                             // cut
  EXPECT_EQ(valid_utf8("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // surrogate
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond Unicode
  EXPECT_EQ(valid_utf8("\x1b"), "\x1b");                              // the JSON writer escapes it
}

TEST(Escape, ShellQuoting) {
  EXPECT_EQ(shell_quoted({"sqlite3", ":memory:", ".read q.sql"}), "sqlite3 :memory: '.read q.sql'");
  EXPECT_EQ(shell_quoted({"a", "", "it's"}), "a '' 'it'\\''s'");
}

TEST(FunctionName, LeavesOutWhatIsNotTheName) {
  EXPECT_EQ(short_function("main"), "main");
  EXPECT_EQ(short_function("app+0x1234"), "app+0x1234");
  EXPECT_EQ(short_function("std::vector<int, std::allocator<int> >::push_back(int&&)"), "std::vector<>::push_back");
  EXPECT_EQ(short_function("void std::sort<int*>(int*, int*)"), "std::sort<>");
  EXPECT_EQ(short_function("A<&(B::f(int))>::g() const"), "A<>::g");
  EXPECT_EQ(short_function("(anonymous namespace)::pool::pool()"), "(anonymous namespace)::pool::pool");
  EXPECT_EQ(short_function("int (anonymous namespace)::f<int>(int)"), "(anonymous namespace)::f<>");
  EXPECT_EQ(short_function("operator new(unsigned long)"), "operator new");
  EXPECT_EQ(short_function("operator new[](unsigned long)"), "operator new[]");
  EXPECT_EQ(short_function("X::operator()(int) const"), "X::operator()");
  EXPECT_EQ(short_function("std::ostream& operator<< <char>(std::ostream&, char)"), "operator<< <>");
  EXPECT_EQ(short_function("X::operator->()"), "X::operator->");
  EXPECT_EQ(short_function("X::operator unsigned long() const"), "X::operator unsigned long");
  EXPECT_EQ(short_function("main::{lambda(int)#1}::operator()(int) const"), "main::{lambda#1}::operator()");
  EXPECT_EQ(short_function("foo(int) [clone .cold]"), "foo");
  EXPECT_EQ(short_function("<alloc::vec::Vec<T> as core::clone::Clone>::clone"),
            "<alloc::vec::Vec<T> as core::clone::Clone>::clone");
  EXPECT_EQ(short_function("my_operator(int)"), "my_operator");
}

TEST(FunctionName, UnbalancedBracketsAreKept) {
  EXPECT_EQ(short_function("f<int"), "f<int");
  EXPECT_EQ(short_function("f(int"), "f(int");
  EXPECT_EQ(short_function(""), "");
}

TEST(FunctionName, PlumbingIsRecognised) {
  EXPECT_TRUE(is_plumbing("malloc", "", "/lib/libc.so.6"));
  EXPECT_TRUE(is_plumbing("operator new(unsigned long)", "", ""));
  EXPECT_TRUE(is_plumbing("void std::vector<int>::_M_realloc_insert<int>(int&&)", "", "app"));
  EXPECT_TRUE(is_plumbing("anything", "", "/usr/lib/libtraceaf.so"));
  EXPECT_TRUE(is_plumbing("allocate", "/usr/include/c++/12/ext/new_allocator.h", "app"));
  EXPECT_TRUE(is_plumbing("alloc::raw_vec::finish_grow", "/rustc/abc/library/alloc/src/raw_vec.rs", "app"));
  EXPECT_FALSE(is_plumbing("main", "main.c", "app"));
  EXPECT_FALSE(is_plumbing("strdup", "", "/lib/libc.so.6"));
  EXPECT_FALSE(is_plumbing("my_malloc", "", "app"));
  EXPECT_FALSE(is_plumbing("alloc::mine", "/src/mine/alloc.cc", "app"));
}

}  // namespace
}  // namespace traceaf::reader::views
