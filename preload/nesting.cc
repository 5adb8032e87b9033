// The rare parts of nesting (see nesting.h).
#include "preload/nesting.h"

#include <signal.h>

#include <bit>
#include <cerrno>

#include "emitter/sys.h"
#include "preload/real.h"

namespace traceaf::preload {

constinit __thread Nest t_nest{};

namespace {

namespace sys = emitter::sys;

// Reads nothing itself: the kernel refuses an address that is not readable with EFAULT before it looks at `how`.
bool readable(FramePointer at) { return sys::call(SYS_rt_sigprocmask, -1, sys::word(at), 0, 8) != -EFAULT; }

bool on_signal_stack() {
  stack_t stack{};
  return !sys::failed(sys::call(SYS_sigaltstack, 0, sys::word(&stack))) && (stack.ss_flags & SS_ONSTACK) != 0;
}

bool still_there(FramePointer outer, FramePointer frame) {
  // Above us and far: on our stack under a deep handler, or on another stack, perhaps one that is gone.
  if (outer > frame) return readable(outer + 1) && outer[1] == t_nest.return_address;
  return outer != frame && on_signal_stack();
}

}  // namespace

Place find_place(FramePointer frame) {
  const FramePointer outer = t_nest.frame;
  if (outer == quiet_mark()) return Place::kQuiet;
  if (still_there(outer, frame)) return Place::kInner;
  t_nest.frame = nullptr;
  flush_stash(frame);
  return Place::kOuter;
}

void flush_stash(FramePointer frame) {
  Nest& nest = t_nest;
  if (nest.stash == nullptr) return;
  const void* p = nest.stash;
  const size_t align = nest.stash_align_log2 == 0 ? 0 : size_t{1} << nest.stash_align_log2;
  nest.stash = nullptr;
  nest.recorded = p;
  emitter::object_born(frame, p, nest.stash_size, nest.stash_entry, align);
}

void inner_birth(FramePointer frame, const void* p, size_t size, wire::Entry entry, size_t align) {
  Nest& nest = t_nest;
  nest.noted = true;
  if (p == nest.dying) nest.dying = nullptr;  // freed already, and born again
  if (p == nest.recorded) return;             // on its way out through several wrappers
  if (p == nest.stash) {
    nest.stash_entry = entry;
    return;
  }
  // The outer call's own block comes from an allocator's code or has just the size asked for. Whatever else is born
  // meanwhile (by a new_handler, by libc for an allocator's thread data) has its own stack, which only now exists.
  const bool fits = size >= nest.size &&
                    (size == nest.size || g_allocator_code.contains(frame[1]) || g_operators_code.contains(frame[1]));
  if (!fits) {
    nest.recorded = p;
    emitter::object_born(frame, p, size, entry, align);
    return;
  }
  flush_stash(nest.frame);
  nest.stash_size = size;
  nest.stash_entry = entry;
  nest.stash_align_log2 = align == 0 ? 0 : static_cast<uint8_t>(std::bit_width(align) - 1);
  nest.stash = p;
}

void inner_death(FramePointer frame, const void* p) {
  Nest& nest = t_nest;
  if (p == nest.dying) return;
  if (p == nest.stash) flush_stash(nest.frame);
  if (p == nest.recorded) nest.recorded = nullptr;
  emitter::object_dying(frame, p);
}

bool inner_move(const void* old) {
  Nest& nest = t_nest;
  if (old == nest.dying) return false;
  if (old == nest.stash) flush_stash(nest.frame);
  if (old == nest.recorded) nest.recorded = nullptr;
  return true;
}

void note_recorded(const void* p) {
  t_nest.recorded = p;
  t_nest.noted = true;
}

bool settle(FramePointer frame, const void* p) {
  Nest& nest = t_nest;
  const bool recorded = p != nullptr && p == nest.recorded;
  if (p != nest.stash) flush_stash(frame);
  nest.stash = nullptr;
  nest.recorded = nullptr;
  nest.noted = false;
  return recorded;
}

}  // namespace traceaf::preload
