// Creation of threads: while recording is on a new thread first tells the recorder its stack. Threads created while
// recording is off, or by clone, are registered at their first event.
#include <pthread.h>
#include <threads.h>

#include "emitter/sys.h"
#include "preload/nesting.h"
#include "preload/next.h"
#include "preload/packets.h"
#include "preload/start.h"

namespace traceaf::preload {
namespace {

namespace sys = emitter::sys;

// The stack of the calling thread, which pthread_getattr_np allocates to find out: those blocks are cells of our own
// and no events (quiet). No signal handler may run meanwhile, because its events would be lost.
void report_thread() {
  const uint64_t all = ~uint64_t{0};
  uint64_t before = 0;
  const bool blocked =
      !sys::failed(sys::call(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, sys::word(&all), sys::word(&before), 8));
  t_nest.frame = quiet_mark();
  void* low = nullptr;
  size_t bytes = 0;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    if (pthread_attr_getstack(&attributes, &low, &bytes) != 0) bytes = 0;
    pthread_attr_destroy(&attributes);
  }
  t_nest.frame = nullptr;
  emitter::thread_begin(low, bytes);
  if (blocked) sys::call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, sys::word(&before), 0, 8);
}

Packet open_packet(void* argument) {
  auto* packet = static_cast<Packet*>(argument);
  const Packet copy = *packet;
  return_packet(packet);
  return copy;
}

// The frames of these two stay on the new thread's stack. pthread_exit, cancellation and exceptions pass through; the
// recorder then finds out by itself that the thread is gone.
void* run_posix(void* argument) {
  const Packet packet = open_packet(argument);
  report_thread();
  void* result = packet.posix(packet.argument);
  emitter::thread_end();
  return result;
}
int run_c11(void* argument) {
  const Packet packet = open_packet(argument);
  report_thread();
  const int result = packet.c11(packet.argument);
  emitter::thread_end();
  return result;
}

}  // namespace

TRACEAF_ON(int, pthread_create,
           (pthread_t * thread, const pthread_attr_t* attributes, void* (*routine)(void*), void* argument)) {
  Packet* packet = recording() ? take_packet() : nullptr;
  if (packet == nullptr) return next_pthread_create(thread, attributes, routine, argument);
  *packet = {routine, nullptr, argument, nullptr};
  const int error = next_pthread_create(thread, attributes, &run_posix, static_cast<void*>(packet));
  if (error != 0) return_packet(packet);
  return error;
}

TRACEAF_ON(int, thrd_create, (thrd_t * thread, thrd_start_t routine, void* argument)) {
  Packet* packet = recording() ? take_packet() : nullptr;
  if (packet == nullptr) return next_thrd_create(thread, routine, argument);
  *packet = {nullptr, routine, argument, nullptr};
  const int result = next_thrd_create(thread, &run_c11, static_cast<void*>(packet));
  if (result != thrd_success) return_packet(packet);
  return result;
}

}  // namespace traceaf::preload
