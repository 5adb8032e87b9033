// What the Process row says of this process, and what /proc says of it from time to time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "emitter/section.h"

namespace traceaf::emitter {

// Takes command line, program and host once, at the start.
void process_facts_init(int argc, char** argv);
// The fields of a Process row as of now.
struct ProcessRow {
  const uint8_t* data;
  size_t size;
};
// The payload is made once a session (under the flush lock or before threads) and stays.
void process_row_prepare(const char* option_text);
ProcessRow process_row();
// The generation that has the row already: written at its start through a slot, so that kill -9 can't take it.
extern std::atomic<uint64_t> g_process_row_generation;
// Resident set now and its peak, in bytes; 0 where /proc does not tell.
void read_resident(uint64_t* now, uint64_t* peak);
// Name of thread `tid` as the kernel has it; its length.
size_t read_thread_name(int tid, char* out, size_t room);

}  // namespace traceaf::emitter
