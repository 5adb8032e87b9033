// Free list of packets in a region (see packets.h).
#include "preload/packets.h"

#include "emitter/lock.h"
#include "emitter/region.h"

namespace traceaf::preload {
namespace {
constinit emitter::Mutex g_lock;  // guards g_free
constinit Packet* g_free = nullptr;
constinit emitter::Region g_memory;
}  // namespace

Packet* take_packet() {
  {
    const emitter::Locked lock(g_lock);
    Packet* packet = g_free;
    if (packet != nullptr) {
      g_free = packet->next;
      return packet;
    }
  }
  return static_cast<Packet*>(g_memory.allocate(sizeof(Packet)));
}

void return_packet(Packet* packet) {
  const emitter::Locked lock(g_lock);
  packet->next = g_free;
  g_free = packet;
}

void packets_after_fork() { g_lock.reset(); }

}  // namespace traceaf::preload
