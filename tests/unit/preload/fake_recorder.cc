// Implements emitter/recorder.h by notes (see fake_recorder.h).
#include "fake_recorder.h"

#include <unistd.h>
#include <cerrno>
#include <cstring>

#include "emitter/sys.h"

namespace fake {
namespace {

constexpr size_t kRoom = 1 << 14;
Note g_notes[kRoom];
std::atomic<uint32_t> g_count{0};
std::atomic<int> g_thread{0};  // whose notes are taken; 0: nobody's, -1: everybody's
Note* g_shared = nullptr;
uint32_t* g_shared_count = nullptr;
uint32_t g_shared_room = 0;
std::atomic<uint32_t> g_word{traceaf::emitter::kGateUninitialised};
bool g_guard_on = false;
bool g_inside = false;
int g_pid = 0;
traceaf::emitter::NextAllocator g_next{};
int g_argc = -1;
char** g_argv = nullptr;
char** g_envp = nullptr;
int g_inits = 0;

Note* add(What what, const void* p) {
  static Note nowhere;
  Note* note = &nowhere;
  if (g_shared != nullptr) {
    const uint32_t index = __atomic_fetch_add(g_shared_count, 1, __ATOMIC_RELAXED);
    if (index < g_shared_room) note = &g_shared[index];
  } else {
    const int whose = g_thread.load();
    if (whose == -1 || (whose != 0 && whose == traceaf::emitter::sys::tid())) {
      const uint32_t index = g_count.fetch_add(1);
      if (index < kRoom) note = &g_notes[index];
    }
  }
  *note = Note{};
  note->what = what;
  note->p = p;
  return note;
}

}  // namespace

void set_gate(uint32_t state) { g_word.store(state); }
void note(bool all_threads) {
  g_count = 0;
  g_thread = all_threads ? -1 : traceaf::emitter::sys::tid();
  set_gate(traceaf::emitter::kGateOn);
}
size_t notes_end(const Note** notes) {
  set_gate(traceaf::emitter::kGateOff);
  g_thread = 0;
  *notes = g_notes;
  return g_count < kRoom ? g_count.load() : kRoom;
}
void set_guard(bool on) { g_guard_on = on; }
void set_inside(bool inside) { g_inside = inside; }
void share(Note* notes, uint32_t* count, uint32_t room) {
  g_shared_count = count;
  g_shared_room = room;
  g_shared = notes;
}
const traceaf::emitter::NextAllocator& next_allocator_info() { return g_next; }
int init_argc() { return g_argc; }
char** init_argv() { return g_argv; }
char** init_envp() { return g_envp; }
int init_calls() { return g_inits; }

}  // namespace fake

namespace traceaf::emitter {

using fake::add;
using fake::What;

std::atomic<uint32_t>* g_gate = &fake::g_word;
std::atomic<uint64_t> g_fake_counters[wire::kCounterSlots];
std::atomic<uint64_t>* g_counters = g_fake_counters;

namespace {
uintptr_t return_address(Frame frame) { return static_cast<const uintptr_t*>(frame)[1]; }
}  // namespace

void object_born(Frame frame, const void* p, size_t size, wire::Entry entry, size_t align) {
  fake::Note* note = add(What::kBorn, p);
  note->size = size;
  note->number = static_cast<int>(entry);
  note->align = align;
  note->return_address = return_address(frame);
}
void object_dying(Frame frame, const void* p) { add(What::kDying, p)->return_address = return_address(frame); }
Move move_begin(const void* old) {
  add(What::kMoveBegin, old);
  return {old, 0, 0, true};
}
void move_failed(Move& move) { add(What::kMoveFailed, move.old); }
void move_freed(Move& move, Frame frame) { add(What::kMoveFreed, move.old)->return_address = return_address(frame); }
void move_done(Move& move, Frame frame, const void* p, size_t size, wire::Entry entry) {
  fake::Note* note = add(What::kMoved, p);
  note->old = move.old;
  note->size = size;
  note->number = static_cast<int>(entry);
  note->return_address = return_address(frame);
}
void mapping_added(const void* at, size_t bytes, wire::SpanSource source) {
  fake::Note* note = add(What::kMapped, at);
  note->size = bytes;
  note->number = static_cast<int>(source);
}
void mapping_removing(const void* at, size_t bytes) { add(What::kUnmapping, at)->size = bytes; }
void mapping_restored(const void* at, size_t bytes) { add(What::kRestored, at)->size = bytes; }
void break_changed() { add(What::kBreak, nullptr); }
void thread_begin(const void* lo, size_t bytes) { add(What::kThreadBegin, lo)->size = bytes; }
void thread_end() { add(What::kThreadEnd, nullptr); }

void process_init(int argc, char** argv, char** envp) {
  fake::g_inits += 1;
  fake::g_argc = argc;
  fake::g_argv = argv;
  fake::g_envp = envp;
  fake::g_pid = sys::pid();
  fake::set_gate(kGateOff);
}
void next_allocator(const NextAllocator& info) { fake::g_next = info; }
void option_changed(const char* value) {
  fake::Note* note = add(What::kOption, value);
  if (value != nullptr) strncpy(note->text, value, sizeof(note->text) - 1);
}
void process_ending(wire::EndReason reason, int status, bool last) {
  fake::Note* note = add(What::kEnding, nullptr);
  note->number = static_cast<int>(reason);
  note->status = status;
  note->align = last ? 1 : 0;
}
void fork_prepare() { add(What::kForkPrepare, nullptr); }
void fork_parent() { add(What::kForkParent, nullptr); }
void fork_child() {
  fake::g_pid = sys::pid();
  add(What::kForkChild, nullptr);
}
void modules_changing() { add(What::kModulesChanging, nullptr); }
void modules_changed() { add(What::kModulesChanged, nullptr); }
void flusher_park() { add(What::kPark, nullptr); }
void flusher_unpark() { add(What::kUnpark, nullptr); }
bool own_process() { return fake::g_pid == sys::pid(); }
bool guard_enabled() { return fake::g_guard_on; }
bool inside_recorder() { return fake::g_inside; }

}  // namespace traceaf::emitter
