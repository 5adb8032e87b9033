// Coroutines on stacks of their own: ucontext, Boost.Context, and switches written by hand with unwind tables and
// without.
#include <sys/mman.h>
#include <ucontext.h>

#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <vector>

#include "tests/e2e/stacks/stacks.h"

extern "C" {
// switch.S: saves the present stack pointer in *from and goes on at `to`.
void switch_stacks(void** from, void* to);
void switch_stacks_no_cfi(void** from, void* to);
extern char enter_coroutine[], enter_coroutine_no_cfi[];  // call the function in rbp
}

namespace stacks {
namespace {

constexpr size_t kStackBytes = size_t{1} << 20;
constexpr unsigned kRing = 4;

char* new_stack() {
  void* room = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  must(room != MAP_FAILED, "mmap");
  return static_cast<char*>(room);
}

ucontext_t g_main, g_ring[kRing];
uint64_t g_sum;

void ring_member(int self) {
  for (unsigned round = 0; round < 5; ++round) {
    unusual_frames(churn, round);
    g_sum = g_sum * 3 + static_cast<unsigned>(self);
    const auto next = static_cast<unsigned>(self + 1) % kRing;
    swapcontext(&g_ring[self], &g_ring[next]);
    churn();
  }
}

// One kind of hand-written coroutines: three that hand on to each other, and back to the main stack.
struct Kind {
  void (*change)(void** from, void* to);
  char* entry;
};
constexpr unsigned kMembers = 3;
const Kind* g_kind;
void* g_main_sp;
void* g_sp[kMembers];
unsigned g_self;

void hand_on(unsigned self, bool last) {
  if (last && self == kMembers - 1) {
    g_kind->change(&g_sp[self], g_main_sp);
  } else {
    g_self = (self + 1) % kMembers;
    g_kind->change(&g_sp[self], g_sp[g_self]);
  }
}

void member() {
  const unsigned self = g_self;
  for (unsigned round = 0;; ++round) {
    unusual_frames(churn, round + self);
    g_sum = g_sum * 5 + self;
    hand_on(self, round == 4);
  }
}

void run(const Kind& kind) {
  g_kind = &kind;
  char* rooms[kMembers];
  for (unsigned i = 0; i < kMembers; ++i) {
    rooms[i] = new_stack();
    // As the switch leaves a stack: r15 to r12, rbx, rbp, the address to go on at. The top word stays zero.
    auto** top = reinterpret_cast<void**>(rooms[i] + kStackBytes) - 4;
    top[0] = kind.entry;
    g_sp[i] = top - 6;
    static_cast<void**>(g_sp[i])[5] = reinterpret_cast<void*>(member);
  }
  g_self = 0;
  kind.change(&g_main_sp, g_sp[0]);
  churn();
  for (char* room : rooms) munmap(room, kStackBytes);
}

}  // namespace

uint64_t contexts() {
  g_sum = 1;
  char* rooms[kRing];
  for (unsigned i = 0; i < kRing; ++i) {
    must(getcontext(&g_ring[i]) == 0, "getcontext");
    rooms[i] = new_stack();
    g_ring[i].uc_stack.ss_sp = rooms[i];
    g_ring[i].uc_stack.ss_size = kStackBytes;
    g_ring[i].uc_link = &g_main;
    makecontext(&g_ring[i], reinterpret_cast<void (*)()>(ring_member), 1, static_cast<int>(i));
  }
  swapcontext(&g_main, &g_ring[0]);
  for (char* room : rooms) munmap(room, kStackBytes);
  return g_sum;
}

uint64_t fibers() {
  namespace context = boost::context;
  uint64_t sum = 0;
  std::vector<context::fiber> running;
  for (unsigned i = 0; i < 5; ++i) {
    running.emplace_back(std::allocator_arg, context::fixedsize_stack(kStackBytes), [&sum, i](context::fiber&& back) {
      for (unsigned round = 0; round < 5; ++round) {
        unusual_frames(churn, i + round);
        sum = sum * 7 + i;
        back = std::move(back).resume();
      }
      return std::move(back);
    });
  }
  for (bool any = true; any;) {
    any = false;
    for (auto& fiber : running) {
      if (!fiber) continue;
      fiber = std::move(fiber).resume();
      any = true;
      churn();
    }
  }
  return sum;
}

uint64_t hand_written_coroutines() {
  g_sum = 1;
  run({switch_stacks, enter_coroutine});
  run({switch_stacks_no_cfi, enter_coroutine_no_cfi});
  return g_sum;
}

}  // namespace stacks
