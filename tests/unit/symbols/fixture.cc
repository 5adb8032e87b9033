// Running readelf, objdump and llvm-symbolizer on the compiled fixtures.
#include "fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace traceaf::reader::fixture {
namespace {

std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::string text;
  std::array<char, 65536> buffer;
  for (size_t got; (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) text.append(buffer.data(), got);
  if (pclose(pipe) != 0) throw std::runtime_error("failed: " + command);
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Lowest address of the loadable segments, and whether the program is linked to fixed addresses.
std::pair<uint64_t, bool> layout_of(const std::string& file) {
  uint64_t lowest = UINT64_MAX;
  bool fixed = false;
  for (const std::string& line : lines_of(output_of("readelf -lW '" + file + "'"))) {
    std::istringstream in(line);
    std::string type, offset, address;
    in >> type >> offset >> address;
    if (type == "LOAD") lowest = std::min<uint64_t>(lowest, std::stoull(address, nullptr, 16) & ~uint64_t{4095});
    if (line.find("file type is EXEC") != std::string::npos) fixed = true;
  }
  return {lowest, fixed};
}

}  // namespace

std::string path(const std::string& name) { return std::string(TRACEAF_FIXTURES) + "/" + name; }

bool exists(const std::string& name) { return access(path(name).c_str(), R_OK) == 0; }

std::string missing() {
  std::ifstream in(path("missing"));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool must_run() {
  const char* ci = std::getenv("CI");
  return ci != nullptr && std::string(ci) == "true";
}

std::string build_id_of(const std::string& file) {
  for (const std::string& line : lines_of(output_of("readelf -nW '" + file + "' 2>/dev/null"))) {
    const size_t at = line.find("Build ID: ");
    if (at != std::string::npos) return line.substr(at + 10);
  }
  return {};
}

Module module_of(const std::string& file, bool with_id) {
  const auto [lowest, fixed] = layout_of(file);
  Module module;
  module.id = 1;
  module.bias = fixed ? 0 : 0x7f5a00001000;
  module.start = module.bias + lowest;
  module.end = module.start + (1 << 26);
  module.path = file;
  if (with_id) module.build_id = build_id_of(file);
  return module;
}

std::vector<Call> calls_of(const std::string& file) {
  std::vector<Call> calls;
  std::string function;
  bool after_call = false;
  for (const std::string& line : lines_of(output_of("objdump -d --no-show-raw-insn '" + file + "'"))) {
    if (!line.empty() && line.front() != ' ') {
      const size_t open = line.find(" <");
      if (open == std::string::npos || !line.ends_with(">:")) continue;
      function = line.substr(open + 2, line.size() - open - 4);
      continue;
    }
    const size_t colon = line.find(":\t");
    if (colon == std::string::npos) continue;
    if (after_call) calls.push_back({std::stoull(line.substr(0, colon), nullptr, 16), function});
    after_call = line.compare(colon + 2, 4, "call") == 0;
  }
  return calls;
}

std::vector<uint64_t> backs_of(const std::vector<Call>& calls) {
  std::vector<uint64_t> backs;
  backs.reserve(calls.size());
  for (const Call& call : calls) backs.push_back(call.back);
  return backs;
}

Resolved resolve(const Module& module, const std::vector<uint64_t>& back, const SymbolOptions& options) {
  const std::vector<Module> modules = {Module{}, module};
  std::vector<Symbolizer::Address> addresses;
  addresses.reserve(back.size());
  for (const uint64_t address : back) addresses.push_back({1, address + module.bias - module.start});
  Symbolizer symbolizer(modules, options);
  Resolved resolved;
  resolved.frames = symbolizer.resolve(addresses);
  resolved.coverage = symbolizer.coverage().at(1);
  return resolved;
}

Resolved resolve(const std::string& file, const std::vector<uint64_t>& back) {
  SymbolOptions options;
  options.debug_dirs.clear();
  return resolve(module_of(file), back, options);
}

Aliases aliases_of(const std::string& file) {
  std::map<std::string, std::vector<std::string>> by_address;
  for (const std::string& line : lines_of(output_of("nm --defined-only '" + file + "'"))) {
    std::istringstream in(line);
    std::string address, type, name;
    in >> address >> type >> name;
    by_address[address].push_back(name);
  }
  Aliases aliases;
  for (const auto& [address, names] : by_address) {
    for (const std::string& name : names) aliases[name] = names;
  }
  return aliases;
}

void expect_same(const std::vector<std::vector<SourceFrame>>& ours,
                 const std::vector<std::vector<SourceFrame>>& expected) {
  ASSERT_EQ(ours.size(), expected.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    ASSERT_EQ(ours[i].size(), expected[i].size()) << ours[i][0].function << " / " << expected[i][0].function;
    for (size_t f = 0; f < ours[i].size(); ++f) {
      EXPECT_EQ(ours[i][f].function, expected[i][f].function);
      EXPECT_EQ(ours[i][f].file, expected[i][f].file);
      EXPECT_EQ(ours[i][f].line, expected[i][f].line);
      EXPECT_EQ(ours[i][f].column, expected[i][f].column);
      EXPECT_EQ(ours[i][f].inlined, expected[i][f].inlined);
    }
  }
}

bool has_oracle() { return std::system("command -v llvm-symbolizer > /dev/null 2>&1") == 0; }

std::vector<std::vector<OracleFrame>> ask_oracle(const std::string& file, const std::vector<uint64_t>& calls) {
  const std::string questions = fmt::format("{}/oracle.{}", TRACEAF_FIXTURES, getpid());
  {
    std::ofstream out(questions);
    for (const uint64_t call : calls) out << fmt::format("{:#x}\n", call);
  }
  const std::string text = output_of(
      fmt::format("llvm-symbolizer --no-demangle --inlines --output-style=JSON --obj='{}' < '{}'", file, questions));
  std::remove(questions.c_str());
  std::vector<std::vector<OracleFrame>> answers;
  for (const std::string& line : lines_of(text)) {
    const nlohmann::json answer = nlohmann::json::parse(line);
    std::vector<OracleFrame>& frames = answers.emplace_back();
    for (const auto& symbol : answer.at("Symbol")) {
      frames.push_back({symbol.at("FunctionName"), symbol.at("FileName"), symbol.at("Line"), symbol.at("Column")});
    }
  }
  if (answers.size() != calls.size()) throw std::runtime_error("llvm-symbolizer did not answer every question");
  return answers;
}

uint32_t marked_line(const std::string& name, const std::string& mark) {
  std::ifstream in(std::string(TRACEAF_FIXTURE_SOURCES) + "/" + name);
  uint32_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const size_t at = line.find("at: " + mark);
    if (at == std::string::npos) continue;
    const size_t end = at + 4 + mark.size();
    if (end == line.size() || line[end] == ' ') return number;
  }
  throw std::runtime_error("no line is marked " + mark);
}

}  // namespace traceaf::reader::fixture
