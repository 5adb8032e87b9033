// Google Benchmark: a malloc and its free through the hooks, in each state of the recorder and at several depths of
// calls. Linked to the library instead of preloaded, so that one process can compare states: it switches them by
// setenv, as a program may.
#include <benchmark/benchmark.h>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/bench/call_tree.h"

// What glibc exports beside malloc and free: the allocator without hooks, for the price of a pair without us.
extern "C" void* __libc_malloc(size_t size);
extern "C" void __libc_free(void* p);

namespace {

constexpr size_t kBytes = 64;

std::string g_out;

// The state of the recorder while a benchmark runs.
class State {
 public:
  explicit State(const char* words) { set(words); }
  ~State() { set("0"); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

 private:
  static void set(const char* words) { setenv("TRACEALLOCFREE", (std::string(words) + ",out=" + g_out).c_str(), 1); }
};

struct Run : traceaf::bench::Turns {
  bool hooked;

  void once() const {
    void* p = hooked ? std::malloc(kBytes) : __libc_malloc(kBytes);
    benchmark::DoNotOptimize(p);
    hooked ? std::free(p) : __libc_free(p);
  }
};

void run(benchmark::State& state, bool changing, bool hooked) {
  Run work{{&state, changing}, hooked};
  traceaf::bench::go_down<0>(work, static_cast<int>(state.range(0)), traceaf::bench::kOuterPath, false);
}

// Argument: frames below the benchmark's own.
void pair(benchmark::State& state, const char* words, bool changing) {
  const State recorder(words);
  run(state, changing, true);
}

void without_hooks(benchmark::State& state, bool changing) { run(state, changing, false); }

BENCHMARK_CAPTURE(without_hooks, same, false)->Arg(5)->Arg(20)->Arg(60);
BENCHMARK_CAPTURE(without_hooks, changing, true)->Arg(5)->Arg(20)->Arg(60);
BENCHMARK_CAPTURE(pair, off, "0", false)->Arg(20);
BENCHMARK_CAPTURE(pair, standby, "standby", false)->Arg(20);
BENCHMARK_CAPTURE(pair, stacks_none, "1,stacks=none", false)->Arg(20);
BENCHMARK_CAPTURE(pair, on_same, "1,stacks=alloc", false)->Arg(5)->Arg(20)->Arg(60);
BENCHMARK_CAPTURE(pair, on_changing, "1,stacks=alloc", true)->Arg(5)->Arg(20)->Arg(60);
BENCHMARK_CAPTURE(pair, both_same, "1,stacks=both", false)->Arg(20);
BENCHMARK_CAPTURE(pair, both_changing, "1,stacks=both", true)->Arg(20);

}  // namespace

int main(int argc, char** argv) {
  std::string folder = (std::filesystem::temp_directory_path() / "traceaf-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  g_out = folder + "/%p.traf";
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  std::filesystem::remove_all(folder);
  return 0;
}
