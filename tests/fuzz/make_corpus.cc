// Writes the golden traces as seeds for reader_fuzz: plain, compressed, with their tails, and as text.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "tests/golden/scenarios.h"

namespace {

using traceaf::testing::Bytes;

void write(const std::filesystem::path& path, uint8_t kind, const Bytes& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.put(static_cast<char>(kind));
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_corpus FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  for (const auto& scenario : traceaf::golden::scenarios()) {
    const std::string name = scenario.name;
    const auto golden = scenario.build();
    write(folder / (name + ".plain"), 0, golden.trace);
    write(folder / (name + ".zstd"), 0, traceaf::testing::zstd_frame(golden.trace));
    const std::string text = traceaf::golden::golden_text(golden);
    write(folder / (name + ".text"), 2, Bytes(text.begin(), text.end()));
    const Bytes tail = traceaf::golden::tail_bytes(golden);
    if (tail.empty()) continue;
    const auto size = static_cast<uint32_t>(golden.trace.size());
    Bytes both;
    for (int i = 0; i < 4; ++i) both.push_back(static_cast<uint8_t>(size >> (8 * i)));
    both.insert(both.end(), golden.trace.begin(), golden.trace.end());
    both.insert(both.end(), tail.begin(), tail.end());
    write(folder / (name + ".tail"), 1, both);
  }
  return 0;
}
