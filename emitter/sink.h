// The output file: the header, then a generation at a time, each in zstd frames of its own (or plain). Used by one
// thread at a time, under the flush lock.
#pragma once

#include <cstddef>
#include <cstdint>

namespace traceaf::emitter {

// Creates the output under the first free name of `pattern` and writes the header. 0 or -errno.
int sink_open(const char* pattern, uint64_t wall_ns, bool compress);
bool sink_is_open();
const char* sink_path();
// n-th image of this pid by the name found (the number that made it unique).
unsigned sink_image();

// Bytes of the current generation. Errors are kept: once one happened everything is refused until sink_close.
void sink_begin_generation();
// From here on compress as fast as possible, or well again. Ends the frame.
void sink_hurry(bool hurry);
bool sink_hurries();
void sink_bytes(const void* from, size_t bytes);
// What was given so far is in the file, readable even if nothing follows. 0 or -errno.
int sink_flush();
// Ends the frame and flushes. 0 or -errno.
int sink_end_generation();

// Removes the file again: nothing will be written.
void sink_discard();
// In a forked child: the file is the parent's.
void sink_forget();

}  // namespace traceaf::emitter
