// Start routine and argument on their way to a new thread. Own memory, used again: the number of packets is that of
// threads being started at the same time, not of threads.
#pragma once

namespace traceaf::preload {

struct Packet {
  void* (*posix)(void*);  // exactly one of the two
  int (*c11)(void*);
  void* argument;
  Packet* next;
};

// nullptr when there is no memory.
Packet* take_packet();
void return_packet(Packet* packet);
// In the child of a fork: whoever held the lock is gone.
void packets_after_fork();

}  // namespace traceaf::preload
