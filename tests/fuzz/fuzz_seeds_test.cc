// Without libFuzzer: the fuzz target over all seeds and a fixed set of mutations of each, so that every build runs it.
#include <gtest/gtest.h>

#include <random>

#include "tests/golden/scenarios.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace traceaf {
namespace {

TEST(ReaderFuzz, SeedsAndTheirMutationsHoldNoContradiction) {
  std::mt19937_64 random(20);
  for (const auto& scenario : golden::scenarios()) {
    const auto built = scenario.build();
    const std::string text = golden::golden_text(built);
    for (const auto& [kind, seed] : {std::pair<uint8_t, testing::Bytes>(0, built.trace),
                                     {0, testing::zstd_frame(built.trace)},
                                     {2, testing::Bytes(text.begin(), text.end())}}) {
      testing::Bytes input{kind};
      input.insert(input.end(), seed.begin(), seed.end());
      EXPECT_EQ(LLVMFuzzerTestOneInput(input.data(), input.size()), 0);
      for (int round = 0; round < 60; ++round) {
        testing::Bytes changed = input;
        for (uint64_t hits = 1 + random() % 4; hits != 0; --hits) {
          const size_t at = 1 + random() % (changed.size() - 1);
          switch (random() % 4) {
            case 0:
              changed[at] = static_cast<uint8_t>(random());
              break;
            case 1:
              changed[at] ^= static_cast<uint8_t>(1U << random() % 8);
              break;
            case 2:
              changed.erase(changed.begin() + static_cast<ptrdiff_t>(at));
              break;
            default:
              changed.insert(changed.begin() + static_cast<ptrdiff_t>(at), static_cast<uint8_t>(random()));
          }
          if (changed.size() < 2) break;
        }
        EXPECT_EQ(LLVMFuzzerTestOneInput(changed.data(), changed.size()), 0);
      }
    }
  }
}

}  // namespace
}  // namespace traceaf
