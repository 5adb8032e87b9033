// What the kernel says about the address space: /proc/self/maps in chunks of a caller's buffer, the bounds of the brk
// heap, and whether an address can be read. Raw system calls only; nothing here is locked.
#pragma once

#include <cstddef>
#include <cstdint>

namespace traceaf::emitter::spans {

struct Mapping {
  uintptr_t start, end;
  bool writable;
};

// Reads the list in address order. It is a moving target: each read() of the kernel's is consistent, the whole is not.
class MapsReader {
 public:
  // `buffer` must outlive the reader. ok() is false when there is no /proc.
  MapsReader(char* buffer, size_t bytes);
  // Reads from a descriptor instead, which it does not close.
  MapsReader(int fd, char* buffer, size_t bytes) : buffer_(buffer), room_(bytes), fd_(fd), owned_(false) {}
  ~MapsReader();
  MapsReader(const MapsReader&) = delete;
  MapsReader& operator=(const MapsReader&) = delete;

  bool ok() const { return fd_ >= 0; }
  // False at the end and after an error; complete() tells them apart. Lines may be split across reads at any byte.
  bool next(Mapping* mapping);
  // The list was read to its end and had at least one line, and no malformed one.
  bool complete() const { return at_end_ && !malformed_ && lines_ > 0; }

 private:
  int get();  // next byte, -1 at the end or after an error
  bool number(char stop, uintptr_t* value);

  char* buffer_;
  size_t room_;
  size_t used_ = 0, next_ = 0;
  int fd_;
  bool owned_ = true;
  bool at_end_ = false;
  bool malformed_ = false;  // what follows cannot be trusted
  uint64_t lines_ = 0;
};

// The mapping that holds `at`.
enum class Found { kYes, kNo, kNoProc };
Found find_mapping(uintptr_t at, char* buffer, size_t bytes, Mapping* mapping);
// Where the brk heap begins (field 47 of /proc/self/stat), 0 when it is not known.
uintptr_t break_start(char* buffer, size_t bytes);
uintptr_t break_now();
// Whether 8 bytes at `at` can be read. Changes nothing.
bool readable(uintptr_t at);

}  // namespace traceaf::emitter::spans
