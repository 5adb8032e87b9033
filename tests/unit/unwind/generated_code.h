// Machine code written at run time, with a .eh_frame to describe it: what a JIT compiler makes, for tests.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace generated {

using Function = void (*)();

class Bytes {
 public:
  explicit Bytes(uint8_t* to) : begin_(to), at_(to) {}
  Bytes& put(std::initializer_list<int> bytes) {
    for (const int byte : bytes) *at_++ = static_cast<uint8_t>(byte);
    return *this;
  }
  template <typename T>
  Bytes& value(T v) {
    std::memcpy(at_, &v, sizeof(v));
    at_ += sizeof(v);
    return *this;
  }
  Bytes& uleb(unsigned v) {
    for (; v >= 128; v >>= 7) put({static_cast<int>((v & 127) | 128)});
    return put({static_cast<int>(v)});
  }
  [[nodiscard]] uint8_t* at() const { return at_; }
  // Fills up to a multiple of 8 bytes, and sets the length in the first four.
  uint8_t* close() {
    while ((at_ - begin_ + 4) % 8 != 0) put({0});
    const auto bytes = static_cast<uint32_t>(at_ - begin_ - 4);
    std::memcpy(begin_, &bytes, 4);
    return at_;
  }

 private:
  uint8_t* begin_;
  uint8_t* at_;
};

// Writes a function with a frame of `frame` bytes that calls `target`; returns its end.
inline uint8_t* emit(uint8_t* to, bool frame_pointer, unsigned frame, Function target) {
  Bytes code(to);
  if (frame_pointer) code.put({0x55, 0x48, 0x89, 0xe5});            // push %rbp; mov %rsp, %rbp
  code.put({0x48, 0x81, 0xec}).value(static_cast<int32_t>(frame));  // sub $frame, %rsp
  code.put({0x48, 0xb8}).value(target).put({0xff, 0xd0});           // movabs $target, %rax; call *%rax
  if (frame_pointer) {
    code.put({0xc9, 0xc3});  // leave; ret
  } else {
    code.put({0x48, 0x81, 0xc4}).value(static_cast<int32_t>(frame)).put({0xc3});  // add $frame, %rsp; ret
  }
  return code.at();
}

// A .eh_frame that describes functions of emit() without a frame pointer.
class Tables {
 public:
  Tables() {
    Bytes common(bytes_);
    common.value(0).value(0).put({1, 'z', 'R', 0, 1, 0x78, 16, 1, 0});  // version 1, factors 1 and -8, register 16
    common.put({0x0c, 7, 8, 0x80 | 16, 1});                             // CFA is rsp + 8; return address at CFA - 8
    end_ = common.close();
    terminate();
  }
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;
  void add(const uint8_t* begin, const uint8_t* end, unsigned frame) {
    if (end_ + 64 > bytes_ + sizeof(bytes_)) std::abort();
    Bytes entry(end_);
    entry.value(0).value(static_cast<int32_t>(end_ + 4 - bytes_)).value(begin).value(end - begin).put({0});
    entry.put({0x40 | 7, 0x0e}).uleb(frame + 8);  // behind the sub: CFA is rsp + frame + 8
    entry.put({0x40 | 19, 0x0e}).uleb(8);         // behind the add
    last_ = end_;
    end_ = entry.close();
    terminate();
  }
  [[nodiscard]] const uint8_t* section() const { return bytes_; }
  [[nodiscard]] const uint8_t* last_entry() const { return last_; }
  [[nodiscard]] size_t bytes() const { return static_cast<size_t>(end_ - bytes_) + 4; }

 private:
  void terminate() { std::memset(end_, 0, 4); }
  alignas(8) uint8_t bytes_[1024];
  uint8_t* end_;
  const uint8_t* last_ = nullptr;
};

// Room for a few functions on top of each other, in memory of no ELF object.
class Chain {
 public:
  static constexpr unsigned kLevels = 5;
  static constexpr size_t kRoom = 4096;
  Chain()
      : code_(static_cast<uint8_t*>(
            mmap(nullptr, kRoom, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    if (code_ == MAP_FAILED) std::abort();
  }
  ~Chain() { munmap(code_, kRoom); }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;
  // kLevels functions, the first calling `hook`, each further one the one before. Returns the outermost.
  Function write(bool frame_pointer, unsigned frame, Function hook, Tables* tables) {
    Function next = hook;
    uint8_t* at = code_;
    for (unsigned level = 0; level < kLevels; ++level) {
      uint8_t* end = emit(at, frame_pointer, frame, next);
      if (tables != nullptr) tables->add(at, end, frame);
      next = reinterpret_cast<Function>(at);
      at = end + 16;
    }
    return next;
  }
  [[nodiscard]] const uint8_t* begin() const { return code_; }
  [[nodiscard]] bool holds(uintptr_t pc) const { return pc - reinterpret_cast<uintptr_t>(code_) < kRoom; }

 private:
  uint8_t* code_;
};

}  // namespace generated
