// Code made at run time: several frames of it on top of each other, with a frame pointer and no tables, with registered
// tables and no frame pointer, and with neither; then other code at the same addresses.
#include "tests/e2e/stacks/stacks.h"
#include "tests/unit/unwind/generated_code.h"

extern "C" {
void __register_frame(const void*);
void __deregister_frame(const void*);
}

namespace stacks {
namespace {

using generated::Chain;
using generated::Function;
using generated::Tables;

void thrower() {
  churn();
  throw 1;
}

uint64_t thrown_through(Function chain) {
  try {
    chain();
  } catch (int n) {
    churn();
    return static_cast<uint64_t>(n);
  }
  return 0;
}

}  // namespace

uint64_t generated_code() {
  uint64_t sum = 0;
  Chain chain;
  for (unsigned round = 0; round < 60; ++round) {
    const unsigned frame = 8 + 16 * (round % 50);
    const Function hook = round % 6 == 0 ? Function([] { unusual_frames(churn, 1); }) : churn;
    // The frame size changes at the same addresses in each round.
    chain.write(true, frame - 8, hook, nullptr)();
    chain.write(false, frame, churn, nullptr)();
    Tables tables;
    const Function chained = chain.write(false, frame, hook, &tables);
    __register_frame(tables.section());
    chained();
    __deregister_frame(tables.section());
    if (round % 10 == 0) {
      Tables others;
      const Function throwing = chain.write(false, frame, thrower, &others);
      __register_frame(others.section());
      sum += thrown_through(throwing);
      __deregister_frame(others.section());
    }
  }
  return sum;
}

}  // namespace stacks
