// The built library: what it exports, what it needs, and that the document of the hooks is fresh.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace {

const std::string kLibrary = TRACEAF_LIBRARY;

std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string all;
  char buffer[4096];
  for (size_t n = 0; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) all.append(buffer, n);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return all;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::set<std::string> table_symbols() {
  return {
#define TRACEAF_FUNCTION(id, symbol, group, entry, presence, type, doc) #symbol,
#include "preload/functions.inc"
#undef TRACEAF_FUNCTION
  };
}

TEST(Library, ExportsTheTableAndNothingElse) {
  std::istringstream lines(output_of("nm -D --defined-only " + kLibrary));
  std::set<std::string> exported;
  std::string line;
  while (std::getline(lines, line)) {
    const std::string name = line.substr(line.rfind(' ') + 1);
    if (name.rfind("traceaf_", 0) != 0) exported.insert(name);
  }
  EXPECT_EQ(exported, table_symbols());
}

TEST(Library, NeedsOnlyLibcAndTheDynamicLinker) {
  const std::string dynamic = output_of("readelf -dW " + kLibrary);
  std::set<std::string> needed;
  const std::regex pattern("NEEDED.*\\[(.*)\\]");
  for (std::sregex_iterator i(dynamic.begin(), dynamic.end(), pattern), end; i != end; ++i) needed.insert((*i)[1]);
  EXPECT_EQ(needed, (std::set<std::string>{"libc.so.6", "ld-linux-x86-64.so.2"}));
  EXPECT_NE(dynamic.find("NODELETE"), std::string::npos);
  EXPECT_NE(dynamic.find("STATIC_TLS"), std::string::npos);
  EXPECT_EQ(dynamic.find("TEXTREL"), std::string::npos);
}

TEST(Library, ReferencesNoUnwinderNoExceptionsNoDynamicTls) {
  const std::string undefined = output_of("nm -D --undefined-only " + kLibrary);
  for (const char* name :
       {"_Unwind_", "__cxa_throw", "__cxa_guard", "__cxa_atexit", "__tls_get_addr", "__gxx_personality", "_Zn", "_Zd",
        " malloc", " calloc", " realloc", " free", "dlsym", " mmap", " getenv"}) {
    EXPECT_EQ(undefined.find(name), std::string::npos) << name;
  }
}

TEST(Library, KeepsToLibc236) {
  const std::string undefined = output_of("nm -D --undefined-only " + kLibrary);
  const std::regex pattern("GLIBC_2\\.(\\d+)");
  int newest = 0;
  for (std::sregex_iterator i(undefined.begin(), undefined.end(), pattern), end; i != end; ++i) {
    newest = std::max(newest, std::stoi((*i)[1]));
  }
  EXPECT_GT(newest, 0);
  EXPECT_LE(newest, 36);
}

TEST(Library, StaticTlsStaysUnder100Bytes) {
  const std::string segments = output_of("readelf -lW " + kLibrary);
  std::smatch found;
  ASSERT_TRUE(std::regex_search(segments, found, std::regex("TLS +0x\\w+ 0x\\w+ 0x\\w+ 0x\\w+ (0x\\w+)")));
  EXPECT_LT(std::stoul(found[1], nullptr, 16), 100U);
}

TEST(Library, WhileOffAGatedFunctionIsFourInstructions) {
  const std::string code = output_of("objdump -d --no-show-raw-insn --disassemble=malloc " + kLibrary);
  const size_t start = code.find("<malloc>:");
  ASSERT_NE(start, std::string::npos);
  std::istringstream lines(code.substr(start));
  std::string line;
  std::getline(lines, line);
  int instructions = 0;
  while (std::getline(lines, line) && !line.empty()) ++instructions;
  EXPECT_EQ(instructions, 4) << code;
}

TEST(Document, HasEveryRowOfTheTable) {
  const std::string document = text_of(TRACEAF_SOURCE "/docs/hooks.md");
  size_t rows = 0;
#define TRACEAF_GATED_gated "yes"
#define TRACEAF_GATED_always "no"
#define TRACEAF_FUNCTION(id, symbol, group, entry, presence, type, doc)                                              \
  EXPECT_NE(document.find("| `" #symbol "` | " #group " | " TRACEAF_GATED_##entry " | " #presence " | " doc " |\n"), \
            std::string::npos)                                                                                       \
      << #symbol << ": run `ninja hooks_document`";                                                                  \
  ++rows;
#include "preload/functions.inc"
#undef TRACEAF_FUNCTION
  size_t lines = 0;
  for (size_t at = 0; (at = document.find("\n| `", at)) != std::string::npos; ++at) ++lines;
  EXPECT_EQ(lines, rows);
}

}  // namespace
