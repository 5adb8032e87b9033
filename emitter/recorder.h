// What the interposers tell the recorder: births, deaths and moves of objects, threads, mappings, and the life of the
// process. Every function may be called inside malloc on any thread, never allocates, keeps errno, and does nothing in
// state off. `Frame` is the wrapper's own frame address (__builtin_frame_address(0) in code built with frame pointers):
// frame[0] = the caller's rbp, frame[1] = the return address (the call site), frame + 16 = the caller's CFA.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "emitter/counters.h"
#include "emitter/wire/entries.h"
#include "emitter/wire/rows.h"

namespace traceaf::emitter {

using Frame = const void*;

// ---- the gate: the only thing a hooked call reads while recording is off -------------------------------------------
// Points to a word in a MADV_WIPEONFORK page once process_init() has run, so that a forked child that nobody told us
// about (a raw fork, a CLONE_VM-less clone) reads "off" and never writes to the parent's shared slots.
// kGateChild: a forked child that will begin its own trace at its first event.
enum : uint32_t { kGateOff = 0, kGateStandby = 1, kGateOn = 2, kGateChild = 3, kGateUninitialised = 0x80 };
extern std::atomic<uint32_t>* g_gate;
inline uint32_t gate() { return g_gate->load(std::memory_order_relaxed); }

// ---- objects -------------------------------------------------------------------------------------------------------
// After the block was obtained. `align`: the alignment asked for, 0 when none.
void object_born(Frame frame, const void* p, size_t size, wire::Entry entry, size_t align);
// Before the block goes back to the allocator.
void object_dying(Frame frame, const void* p);

// realloc: begin before, end after the real call, on the same thread. Between them the thread stays inside the
// generation it entered. Failure of the real call records nothing.
struct Move {
  const void* old;
  uint64_t time;
  uint64_t span;  // opaque to callers
  bool open;
};
Move move_begin(const void* old);
void move_failed(Move& move);
// The old block is gone and nothing was born (realloc(p, 0) that returned null).
void move_freed(Move& move, Frame frame);
void move_done(Move& move, Frame frame, const void* p, size_t size, wire::Entry entry);

// ---- mappings made by the program (or by an allocator in line) -----------------------------------------------------
void mapping_added(const void* at, size_t bytes, wire::SpanSource source);
// Before munmap; mapping_restored when it failed.
void mapping_removing(const void* at, size_t bytes);
void mapping_restored(const void* at, size_t bytes);
// After brk or sbrk changed the program break.
void break_changed();

// ---- threads -------------------------------------------------------------------------------------------------------
// First thing on a new thread, with its stack [lo, lo + bytes). Threads that skip it are registered at their first
// event.
void thread_begin(const void* stack_lo, size_t stack_bytes);
// Last thing in the thread's start routine. Events of later destructors still count for this thread.
void thread_end();

// ---- the process ---------------------------------------------------------------------------------------------------
// Reads TRACEALLOCFREE from `envp`, starts recording when it says so, and sets g_gate. Idempotent and thread-safe; a
// call that finds another thread inside returns at once (the caller sees gate() == kGateUninitialised and forwards).
void process_init(int argc, char** argv, char** envp);
// Which object provides the next malloc; tells the span logic its geometry. Any pointer may be null.
struct NextAllocator {
  const void* malloc_address;
  const char* object_path;                                     // of the shared object that has it
  int (*mallctl)(const char*, void*, size_t*, void*, size_t);  // jemalloc
  size_t (*usable_size)(void*);
};
void next_allocator(const NextAllocator& info);
// TRACEALLOCFREE was set to `value` (nullptr: unset). Returns when the new state is in force for every later call.
void option_changed(const char* value);
// Everything recorded so far goes to the output, and the trace says how the image ended. `last`: no event follows, the
// tail is removed; otherwise recording goes on (an exec may fail).
void process_ending(wire::EndReason reason, int status, bool last);
// pthread_atfork handlers. In the child a new trace is begun lazily (follow=1) or recording is off (follow=0).
void fork_prepare();
void fork_parent();
void fork_child();
// Before and after dlclose: cached facts about code addresses are dropped, and between the two none is trusted.
void modules_changing();
void modules_changed();
// The flusher thread must not exist while the program calls unshare, setns or the like.
void flusher_park();
void flusher_unpark();
// True when this process image is the one that started the session (false in a vfork or CLONE_VM child).
bool own_process();
// The option `guard`, and whether the calling thread is inside one of the functions above.
bool guard_enabled();
bool inside_recorder();

}  // namespace traceaf::emitter
