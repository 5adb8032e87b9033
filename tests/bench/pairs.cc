// Measures the price of a free and a malloc at a given depth of calls: pairs COUNT DEPTH THREADS prints ns per pair.
// The calls follow one of some hundred paths, as programs do, and each pair replaces a random block of a working set.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int kPaths = 256;
constexpr int kPairsAPath = 8;
constexpr size_t kSizes[] = {16, 32, 40, 64, 100, 200, 512, 24};

struct Worker {
  std::vector<void*> blocks = std::vector<void*>(8192);
  uint64_t state;

  uint64_t random() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  }

  void replace() {
    const uint64_t r = random();
    void*& block = blocks[r % blocks.size()];
    std::free(block);
    block = std::malloc(kSizes[(r >> 40) % std::size(kSizes)]);
    *static_cast<volatile char*>(block) = 1;
  }
};

// A chain of `depth` frames; which of two functions stands at each level comes from the bits of `path`. The result is
// used after the call, so that no call becomes a jump.
template <int kSide>
[[gnu::noinline]] int go_down(Worker& worker, int depth, uint64_t path) {
  if (depth == 0) {
    for (int i = 0; i < kPairsAPath; ++i) worker.replace();
    return kSide;
  }
  const uint64_t next = path * 0x9e3779b97f4a7c15u + 1;
  const int below = (path >> 17) % 2 == 0 ? go_down<0>(worker, depth - 1, next) : go_down<1>(worker, depth - 1, next);
  return below + kSide;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: pairs COUNT DEPTH THREADS\n", stderr);
    return 2;
  }
  const long count = std::atol(argv[1]);
  const int depth = std::atoi(argv[2]), threads = std::atoi(argv[3]);
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([=] {
      Worker worker{.state = 0x2545f4914f6cdd1du + static_cast<uint64_t>(t)};
      int sum = 0;
      for (long i = 0; i < count / threads; i += kPairsAPath)
        sum += go_down<0>(worker, depth, worker.random() % kPaths);
      for (void* block : worker.blocks) std::free(block);
      if (sum == -1) std::abort();  // never: the sum is used, so that no call can be left out
    });
  }
  for (auto& worker : workers) worker.join();
  const auto passed = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start);
  std::printf("%.2f\n", passed.count() / static_cast<double>(count));
  return 0;
}
