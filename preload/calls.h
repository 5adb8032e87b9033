// What the wrappers of the allocation family have in common: a birth, a death, a move, each around one real call.
//
//   if (!recording()) return next_malloc(size);
//   Birth call(TRACEAF_FRAME, size);
//   return call.done(next_malloc(size), size, wire::Entry::k_malloc);
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "emitter/recorder.h"
#include "preload/bootstrap.h"
#include "preload/broken.h"
#include "preload/guard.h"
#include "preload/nesting.h"
#include "preload/next.h"
#include "preload/start.h"

namespace traceaf::preload {

class Birth {
 public:
  [[gnu::always_inline]] Birth(FramePointer frame, size_t size) : frame_(frame), place_(place_of(frame)) {
    guard(frame);
    if (place_ == Place::kOuter) [[likely]]
      announce(frame, size, nullptr);
  }
  // libc allocates on behalf of our thread trampoline: the program's heap is left alone (see threads.cc).
  [[nodiscard]] bool quiet() const { return place_ == Place::kQuiet; }
  // `p`: what the real call returned. Records the birth unless it is null or part of another call; returns `p`.
  [[gnu::always_inline]] void* done(void* p, size_t size, wire::Entry entry, size_t align = 0) {
    broken::after_success(p != nullptr);
    if (place_ == Place::kOuter) [[likely]] {
      const bool has_event = retire(frame_) && settle(frame_, p);
      if (p != nullptr && !has_event) emitter::object_born(frame_, p, size, entry, align);
    } else if (p != nullptr && place_ == Place::kInner) {
      inner_birth(frame_, p, size, entry, align);
    }
    return p;
  }

 private:
  const FramePointer frame_;
  const Place place_;
};

// `p` is not null. The real call lies in the life of this object.
class Death {
 public:
  [[gnu::always_inline]] Death(FramePointer frame, const void* p) : frame_(frame), place_(place_of(frame)) {
    if (place_ == Place::kOuter) [[likely]] {
      if (!broken::drops_death()) emitter::object_dying(frame, p);
      announce(frame, SIZE_MAX, p);
    } else if (place_ == Place::kInner) {
      inner_death(frame, p);
    }
  }
  [[gnu::always_inline]] ~Death() {
    if (place_ == Place::kOuter && retire(frame_)) [[unlikely]]
      settle(frame_, nullptr);
    broken::after_success(true);
  }
  Death(const Death&) = delete;
  Death& operator=(const Death&) = delete;

 private:
  const FramePointer frame_;
  const Place place_;
};

// `old` is not null.
class Moving {
 public:
  [[gnu::always_inline]] Moving(FramePointer frame, const void* old, size_t size)
      : frame_(frame), place_(place_of(frame)) {
    guard(frame);
    if (place_ != Place::kOuter) [[unlikely]] {
      part_ = place_ == Place::kQuiet || !inner_move(old);
      if (part_) return;
    }
    move_ = emitter::move_begin(old);
    if (place_ == Place::kOuter) [[likely]]
      announce(frame, size, old);
  }
  // `p`: what the real call returned; null with `size` 0 means that the block was freed.
  [[gnu::always_inline]] void* done(void* p, size_t size, wire::Entry entry) {
    broken::after_success(p != nullptr);
    if (part_) [[unlikely]]
      return p;
    const bool has_birth = place_ == Place::kOuter && retire(frame_) && settle(frame_, p);
    if ((p == nullptr && size == 0) || has_birth) {
      emitter::move_freed(move_, frame_);
    } else if (p == nullptr) {
      emitter::move_failed(move_);
    } else {
      emitter::move_done(move_, frame_, p, size, entry);
      if (place_ == Place::kInner) note_recorded(p);
    }
    return p;
  }

 private:
  const FramePointer frame_;
  const Place place_;
  bool part_ = false;  // of another call, which records it
  emitter::Move move_{};
};

// Takes a block of ours out of the hands of a function that frees; true when it was one.
[[gnu::always_inline]] inline bool took_back(void* p) {
  if (!bootstrap::owns(p)) [[likely]]
    return false;
  bootstrap::give_back(p);
  return true;
}

}  // namespace traceaf::preload
