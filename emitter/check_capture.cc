// Comparison of captures with a plain walk and with libunwind (see check_capture.h). Empty in the real library.
//
// libunwind is opened in a constructor with RTLD_LOCAL: linked to, its _Unwind_* would take the place of the C++
// runtime's. It is the oracle wherever tables lead; where they do not, the two may give up at different places, and the
// totals say how often and why:
//   cap         ours was cut at the depth cap
//   no_tables   ours ended at code without tables, where libunwind tries on
//   unreadable  ours ended at memory that it did not read
//   generated   a frame outside every ELF object: libunwind knows no registered tables, and guesses otherwise
//   guessed     ours went on over code without tables by its frame pointer
//   failed      libunwind reported an error where ours went on
// In each case the frames up to that place must be the same. Anything else is a difference. The total `registered` is
// of captures that crossed generated code by tables which the program registered.
#ifdef TRACEAF_CHECK_CAPTURE
#include "emitter/check_capture.h"

#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <libunwind.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include <atomic>

#include "emitter/context_tree.h"
#include "emitter/modules.h"
#include "emitter/region.h"
#include "emitter/sys.h"

namespace traceaf::emitter {
namespace {

using unwind::Step;
using wire::NodeRoot;

#define TRACEAF_CHECK_TOTALS(X) \
  X(captures)                   \
  X(frames)                     \
  X(different)                  \
  X(interrupted)                \
  X(other_stack)                \
  X(registered)                 \
  X(libunwind)                  \
  X(libunwind_frames)           \
  X(libunwind_different)        \
  X(unchecked)                  \
  X(cap)                        \
  X(no_tables)                  \
  X(unreadable)                 \
  X(generated)                  \
  X(guessed)                    \
  X(failed)

constexpr size_t kTextRoom = 24 << 10;

struct Totals {
#define X(name) std::atomic<uint64_t> name;
  TRACEAF_CHECK_TOTALS(X)
#undef X
  // The first difference, and the first capture that ended at unreadable memory, which should be rare.
  struct Example {
    std::atomic<bool> taken;
    std::atomic<uint32_t> bytes;  // 0 until the text is complete
    char text[kTextRoom];
  } difference, unreadable_end;
};

// Memory that a forked child finds empty: it counts for itself.
constinit std::atomic<Totals*> g_totals{nullptr};
constinit const char* g_out = nullptr;
constinit uint64_t g_every = 0;  // 0: libunwind is not asked

struct Libunwind {
  decltype(&unw_init_local) init;
  decltype(&unw_step) step;
  decltype(&unw_get_reg) get;
  decltype(&unw_flush_cache) flush;
  int (*context)(unw_tdep_context_t*);
  unw_addr_space_t space;
};
constinit Libunwind g_libunwind{};
constinit std::atomic<uint64_t> g_flushed_epoch{0};

#define TRACEAF_TEXT_OF(x) #x
#define TRACEAF_NAME_OF(function) TRACEAF_TEXT_OF(function)
template <typename F>
bool find(void* library, const char* name, F* function) {
  *function = reinterpret_cast<F>(dlsym(library, name));
  return *function != nullptr;
}

__attribute__((constructor)) void set_up() {
  g_out = getenv("TRACEAF_CHECK_OUT");
  if (g_out != nullptr) g_out = strdup(g_out);
  const char* every = getenv("TRACEAF_CHECK_LIBUNWIND");
  const uint64_t wanted = every == nullptr ? 0 : strtoull(every, nullptr, 10);
  if (wanted == 0) return;
  void* library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) abort();  // a test that does not check must not pass
  Libunwind found{};
  const auto* space = static_cast<unw_addr_space_t*>(dlsym(library, TRACEAF_NAME_OF(unw_local_addr_space)));
  if (space == nullptr || !find(library, TRACEAF_NAME_OF(unw_init_local), &found.init) ||
      !find(library, TRACEAF_NAME_OF(unw_step), &found.step) ||
      !find(library, TRACEAF_NAME_OF(unw_get_reg), &found.get) ||
      !find(library, TRACEAF_NAME_OF(unw_flush_cache), &found.flush) ||
      !find(library, "_Ux86_64_getcontext", &found.context)) {
    abort();
  }
  found.space = *space;
  g_libunwind = found;
  g_every = wanted;
}

// Room for one comparison; several at once are needed by threads and by handlers that interrupt one.
struct Scratch {
  Scratch* next;
  uint32_t cap;
  unw_context_t context;
  unw_cursor_t cursor;
  uintptr_t* theirs;
  Step* ours;
};
constinit std::atomic<Scratch*> g_scratch[64] = {};

Scratch* take_scratch(uint32_t cap) {
  for (auto& slot : g_scratch) {
    Scratch* taken = slot.exchange(nullptr, std::memory_order_acq_rel);
    if (taken != nullptr) return taken;
  }
  auto* fresh = static_cast<char*>(own_map(sizeof(Scratch) + cap * (sizeof(Step) + sizeof(uintptr_t))));
  if (fresh == nullptr) return nullptr;
  auto* scratch = reinterpret_cast<Scratch*>(fresh);
  scratch->cap = cap;
  scratch->ours = reinterpret_cast<Step*>(fresh + sizeof(Scratch));
  scratch->theirs = reinterpret_cast<uintptr_t*>(scratch->ours + cap);
  return scratch;
}

void give_scratch(Scratch* scratch) {
  for (auto& slot : g_scratch) {
    Scratch* empty = nullptr;
    if (slot.compare_exchange_strong(empty, scratch, std::memory_order_acq_rel)) return;
  }
  own_unmap(scratch, sizeof(Scratch) + scratch->cap * (sizeof(Step) + sizeof(uintptr_t)));
}

Totals* totals() {
  Totals* known = g_totals.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  auto* fresh = static_cast<Totals*>(own_map(sizeof(Totals)));
  if (fresh == nullptr) __builtin_trap();
  sys::advise(fresh, (sizeof(Totals) + 4095) & ~size_t{4095}, MADV_WIPEONFORK);
  if (g_totals.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) return fresh;
  own_unmap(fresh, sizeof(Totals));
  return known;
}

class Text {
 public:
  Text(char* to, size_t room) : to_(to), room_(room) {}
  Text& text(const char* s) {
    for (; *s != 0 && used_ < room_; ++s) to_[used_++] = *s;
    return *this;
  }
  Text& number(uint64_t value, unsigned base = 10) {
    char digits[20];
    unsigned n = 0;
    do digits[n++] = "0123456789abcdef"[value % base];
    while ((value /= base) != 0);
    while (n != 0 && used_ < room_) to_[used_++] = digits[--n];
    return *this;
  }
  // A code address as file name and offset.
  Text& place(uintptr_t pc) {
    const Module* module = module_by_id(module_of(pc));
    text(" ");
    if (module == nullptr) return number(pc, 16);
    const char* name = strrchr(module->path, '/');
    return text(name != nullptr ? name + 1 : module->path).text("+").number(pc - module->bias, 16);
  }
  [[nodiscard]] size_t used() const { return used_; }

 private:
  char* to_;
  size_t room_;
  size_t used_ = 0;
};

constexpr uint32_t kShown = 60;

// Keeps both stacks of the first one. `theirs` is null where ours is the capture and the other a plain walk.
void keep_example(Totals::Example* example, const char* kind, const Scratch& s, uint32_t ours, uint32_t node,
                  uint32_t theirs, NodeRoot root, int64_t result) {
  if (example->taken.exchange(true)) return;
  Text text(example->text, kTextRoom);
  text.text(" first=[").text(kind).text(" root ").number(static_cast<uint64_t>(root));
  text.text(" result ").number(static_cast<uint64_t>(result < 0 ? -result : result));
  text.text(" plain:");
  for (uint32_t i = 0; i < ours && i < kShown; ++i) {
    text.place(s.ours[i].ra);
    if (s.ours[i].flags != 0) text.text((s.ours[i].flags & unwind::kInterrupted) != 0 ? "!" : "?");
  }
  text.text(" captured:");
  uint32_t shown = 0;
  for (const ContextNode* at = context_node(node); at != nullptr && shown < kShown; at = context_node(at->parent)) {
    text.place(at->ra);
    if ((at->origin & kOriginGuessed) != 0) text.text("?");
    ++shown;
  }
  if (theirs != UINT32_MAX) {
    text.text(" libunwind:");
    for (uint32_t i = 0; i < theirs && i < kShown; ++i) text.place(s.theirs[i]);
  }
  text.text("]");
  example->bytes.store(static_cast<uint32_t>(text.used()), std::memory_order_release);
}

bool equals_chain(const Step* steps, uint32_t n, NodeRoot root, uint32_t node) {
  for (uint32_t i = 0; i < n; ++i) {
    const ContextNode* at = context_node(node);
    const bool guessed = (steps[i].flags & unwind::kGuessed) != 0;
    if (at == nullptr || at->ra != steps[i].ra || at->origin != node_origin(steps[i].module, guessed)) return false;
    node = at->parent;
  }
  return node == static_cast<uint32_t>(root);
}

// Frames of libunwind from `start` on, at most one more than `cap`; *result: its last answer. UINT32_MAX when it did
// not come by `start`. `context` was filled in a frame below.
uint32_t ask_libunwind(Scratch* s, const unwind::Start& start, uint32_t cap, int* result) {
  const uint64_t epoch = modules_epoch();
  if (g_flushed_epoch.exchange(epoch) != epoch) g_libunwind.flush(g_libunwind.space, 0, 0);
  if (g_libunwind.init(&s->cursor, &s->context) != 0) return UINT32_MAX;
  uint32_t n = 0;
  bool met = false;
  while ((*result = g_libunwind.step(&s->cursor)) > 0 && n < cap) {
    unw_word_t ip = 0;
    unw_word_t sp = 0;
    g_libunwind.get(&s->cursor, UNW_REG_IP, &ip);
    g_libunwind.get(&s->cursor, UNW_REG_SP, &sp);
    met = met || (ip == start.ra && sp == start.cfa);
    if (!met) continue;
    if (ip == 0) {
      *result = 0;
      break;
    }
    s->theirs[n++] = ip;
  }
  return met ? n : UINT32_MAX;
}

void compare_libunwind(Totals* t, Scratch* s, const unwind::Start& start, uint32_t ours, NodeRoot root, uint32_t node) {
  int result = 0;
  const uint32_t theirs = ask_libunwind(s, start, s->cap, &result);
  t->libunwind.fetch_add(1, std::memory_order_relaxed);
  if (theirs == UINT32_MAX) {
    // Nothing to compare with; where the wrapper itself was not found, that is one difference.
    t->libunwind_different.fetch_add(1, std::memory_order_relaxed);
    keep_example(&t->difference, "lost", *s, ours, node, 0, root, result);
    return;
  }
  uint32_t same = 0;
  bool generated = false;
  bool guessed = false;
  while (same < ours && same < theirs && s->ours[same].ra == s->theirs[same]) {
    guessed = guessed || (s->ours[same].flags & unwind::kGuessed) != 0;
    generated = generated || s->ours[same].module == 0;
    ++same;
  }
  // The frame behind the last equal one may be a guess of ours.
  guessed = guessed || (same < ours && (s->ours[same].flags & unwind::kGuessed) != 0);
  t->libunwind_frames.fetch_add(same, std::memory_order_relaxed);
  if (same == ours && same == theirs && root == NodeRoot::kComplete) return;
  std::atomic<uint64_t>* why = nullptr;
  if (generated) {
    why = &t->generated;
  } else if (guessed) {
    why = &t->guessed;
  } else if (same == ours && root == NodeRoot::kDepthCap) {
    why = &t->cap;
  } else if (same == ours && root == NodeRoot::kNoCfi) {
    why = &t->no_tables;
  } else if (same == ours && root == NodeRoot::kUnreadable) {
    why = &t->unreadable;
    keep_example(&t->unreadable_end, "unreadable", *s, ours, node, theirs, root, result);
  } else if (same == theirs && result < 0) {
    why = &t->failed;
  }
  if (why == nullptr) {
    why = &t->libunwind_different;
    keep_example(&t->difference, "libunwind", *s, ours, node, theirs, root, result);
  }
  why->fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

__attribute__((noinline)) void check_capture(Frame frame, const unwind::Bounds& bounds, uint32_t cap, uint32_t node,
                                             NodeRoot root) {
  Totals* const t = totals();
  Scratch* const s = take_scratch(cap);
  if (s == nullptr) {
    t->unchecked.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const unwind::Start start = unwind::start_of(frame);
  NodeRoot end{};
  const uint32_t n = unwind::walk(start, bounds, s->ours, cap, &end);
  const uint64_t number = t->captures.fetch_add(1, std::memory_order_relaxed);
  t->frames.fetch_add(n, std::memory_order_relaxed);
  if (bounds.hi == 0) t->other_stack.fetch_add(1, std::memory_order_relaxed);
  bool interrupted = false;
  bool registered = false;
  for (uint32_t i = 0; i < n; ++i) {
    interrupted = interrupted || (s->ours[i].flags & unwind::kInterrupted) != 0;
    registered = registered || (i != 0 && s->ours[i - 1].module == 0 && s->ours[i].flags == 0);
  }
  if (interrupted) t->interrupted.fetch_add(1, std::memory_order_relaxed);
  if (registered) t->registered.fetch_add(1, std::memory_order_relaxed);
  if (end != root || !equals_chain(s->ours, n, end, node)) {
    t->different.fetch_add(1, std::memory_order_relaxed);
    keep_example(&t->difference, "plain", *s, n, node, UINT32_MAX, end, static_cast<int64_t>(root));
  }
  if (g_every != 0 && number % g_every == 0) {
    g_libunwind.context(&s->context);
    compare_libunwind(t, s, start, n, end, node);
  }
  give_scratch(s);
}

void check_capture_report() {
  Totals* const t = g_totals.load(std::memory_order_acquire);
  if (t == nullptr || g_out == nullptr) return;
  const int fd = sys::open(g_out, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return;
  char line[1024];
  Text text(line, sizeof(line));
  text.text("pid=").number(static_cast<uint64_t>(sys::pid()));
#define X(name) text.text(" " #name "=").number(t->name.exchange(0));
  TRACEAF_CHECK_TOTALS(X)
#undef X
  char end[] = "\n";
  // In one call, so that lines of several processes do not mix.
  const auto part = [](Totals::Example& e) { return iovec{e.text, e.bytes.load(std::memory_order_acquire)}; };
  const iovec parts[] = {{line, text.used()}, part(t->difference), part(t->unreadable_end), {end, 1}};
  sys::call(SYS_writev, fd, sys::word(parts), 4);
  sys::close(fd);
}

}  // namespace traceaf::emitter
#endif
