// A frame that the walk guessed keeps its mark: in the tree, in the rows, in what the reader makes of them.
#include <sys/mman.h>

#include <cstring>
#include <memory>

#include "emitter/context_tree.h"
#include "session_fixture.h"

namespace traceaf::emitter {
namespace {

TEST(ContextTree, AGuessedCallIsANodeOfItsOwn) {
  constexpr uintptr_t kRa = 0x123456;
  constexpr uint32_t kModule = (1u << 20) - 1;
  const auto cache = std::make_unique<ChildCache>();
  const auto root = static_cast<uint32_t>(wire::NodeRoot::kComplete);
  const uint32_t outer = context_child(*cache, root, kRa, node_origin(kModule, false));
  const uint32_t known = context_child(*cache, outer, kRa, node_origin(kModule, false));
  const uint32_t guessed = context_child(*cache, outer, kRa, node_origin(kModule, true));
  ASSERT_NE(known, 0u);
  ASSERT_NE(guessed, 0u);
  EXPECT_NE(known, guessed);
  for (int round = 0; round < 2; ++round) {  // each takes the other's place in the cache
    EXPECT_EQ(context_child(*cache, outer, kRa, node_origin(kModule, false)), known);
    EXPECT_EQ(context_child(*cache, outer, kRa, node_origin(kModule, true)), guessed);
  }
  EXPECT_EQ(module_of_origin(context_node(guessed)->origin), kModule);
}

__attribute__((noinline)) void born_here() {
  static int block;
  object_born(__builtin_frame_address(0), &block, 24, wire::Entry::k_malloc, 0);
  object_dying(__builtin_frame_address(0), &block);
}

// Calls `target` with a frame of its own, and has no unwind tables.
struct Generated {
  explicit Generated(void (*target)())
      : code(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    uint8_t bytes[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x5d, 0xc3};
    memcpy(bytes + 6, &target,
           sizeof(target));  // push %rbp; mov %rsp,%rbp; mov $target,%rax; call *%rax; pop %rbp; ret
    memcpy(code, bytes, sizeof(bytes));
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
  }
  [[nodiscard]] void (*function() const)() { return reinterpret_cast<void (*)()>(code); }
  void* code;
};

// One return address, whoever is called.
__attribute__((noinline)) void call(void (*function)()) {
  function();
  asm volatile("");
}

// Frames of the site from the innermost outwards: whether each is a guess.
std::vector<bool> guesses(const reader::Profile& p, uint32_t node) {
  std::vector<bool> out;
  for (; node >= wire::kFirstNode; node = p.nodes[node].parent) out.push_back(p.nodes[node].guessed);
  return out;
}

TEST_F(SessionTest, AGuessedFrameIsMarkedInTheTrace) {
  ASSERT_EQ(record("1",
                   [] {
                     const Generated generated(&born_here);
                     // By turns and from one place: the memory of the last walk must keep them apart.
                     void (*const targets[])() = {generated.function(), &born_here};
                     for (int i = 0; i < 20; ++i) {
                       int turn = i % 2;
                       asm volatile("" : "+r"(turn));
                       call(targets[turn]);
                     }
                     finish();
                   }),
            0);
  const reader::Profile p = read();
  EXPECT_EQ(p.allocated.count, 20u);
  ASSERT_EQ(p.sites.size(), 2u);
  uint64_t place[2] = {};  // where call() was, on the way through generated code and directly
  for (const reader::Site& site : p.sites) {
    EXPECT_EQ(site.allocated.count, 10u);
    const std::vector<bool> marks = guesses(p, site.node);
    ASSERT_GT(marks.size(), 3u);
    const bool generated = p.nodes[site.node].module == 0;
    for (size_t i = 0; i < marks.size(); ++i) EXPECT_EQ(marks[i], generated && i == 1) << i;
    place[generated ? 0 : 1] = p.nodes[generated ? p.nodes[site.node].parent : site.node].offset;
  }
  EXPECT_NE(place[0], 0u);
  EXPECT_EQ(place[0], place[1]);
}

}  // namespace
}  // namespace traceaf::emitter
