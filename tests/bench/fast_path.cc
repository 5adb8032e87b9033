// Does the same malloc or free over and over in a fixed state, for a count of instructions under callgrind:
// fast_path DEPTH same|changing. The library is preloaded and TRACEALLOCFREE says its state. Prints how many calls one
// dump of callgrind has; dumps of malloc and of free take turns. The warm-up is long enough for the recorder's own
// thread to be there. Most rounds have no change of batches in them, so the cheapest round is the path of an event.
#include <valgrind/callgrind.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace {

constexpr int kCalls = 100;
constexpr int kWarmUp = 20;  // rounds before those that are counted
constexpr int kCounted = 5;
constexpr int kOutside = 4;  // frames that are there anyway: main and what libc has around it
constexpr int kTurning = 4;  // innermost frames that differ from call to call on a changing stack
constexpr unsigned kPaths = 16;
constexpr unsigned kOuterPath = 0x5a5a5a5a;

struct Work {
  void* blocks[kCalls];
  bool frees;
  int turning;  // depth at which the calls are made one by one, each on a path of its own; 0: all from the bottom

  void one(int i) {
    if (frees) {
      std::free(blocks[i]);
    } else {
      blocks[i] = std::malloc(64);
    }
  }
};

// `left` more frames; which of two functions stands at each comes from the bits of `path`. `call`: the one to make at
// the bottom, -1 above the turning point.
template <int kSide>
[[gnu::noinline]] void go_down(Work& work, int left, unsigned path, int call) {
  const auto below = [&](unsigned way, int which) {
    way % 2 == 0 ? go_down<0>(work, left - 1, way / 2, which) : go_down<1>(work, left - 1, way / 2, which);
  };
  if (left == work.turning && call < 0) {
    for (int i = 0; i < kCalls; ++i) left == 0 ? work.one(i) : below(static_cast<unsigned>(i) % kPaths, i);
  } else if (left == 0) {
    work.one(call);
  } else {
    below(path, call);
  }
  asm volatile("" ::: "memory");  // so that no call becomes a jump
}

}  // namespace

int main(int argc, char** argv) {
  const int frames = argc == 3 ? std::atoi(argv[1]) - kOutside - 1 : -1;
  const bool changing = argc == 3 && std::strcmp(argv[2], "changing") == 0;
  if (frames < (changing ? kTurning : 0)) {
    std::fputs("usage: fast_path DEPTH same|changing\n", stderr);
    return 2;
  }
  static Work work;
  work.turning = changing ? kTurning : 0;
  for (int round = 0; round < kWarmUp + kCounted; ++round) {
    const bool counted = round >= kWarmUp;
    for (const bool frees : {false, true}) {
      work.frees = frees;
      go_down<0>(work, frames, kOuterPath, -1);
      if (!counted) {
        CALLGRIND_ZERO_STATS;
      } else if (frees) {
        CALLGRIND_DUMP_STATS_AT("free");
      } else {
        CALLGRIND_DUMP_STATS_AT("malloc");
      }
    }
  }
  std::printf("%d\n", kCalls);
  return 0;
}
