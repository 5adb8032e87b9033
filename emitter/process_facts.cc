// Facts of the process for the trace (see process_facts.h).
#include "emitter/process_facts.h"

#include <sys/resource.h>
#include <cerrno>
#include <cstring>

#include "emitter/clock.h"
#include "emitter/session.h"
#include "emitter/sink.h"
#include "emitter/sys.h"

#ifndef TRACEAF_VERSION
#define TRACEAF_VERSION "0.1.0"
#endif

namespace traceaf::emitter {

constinit std::atomic<uint64_t> g_process_row_generation{0};

namespace {

constexpr size_t kCommandRoom = 4096;
constinit char g_command[kCommandRoom] = {};  // arguments, each with its NUL
constinit size_t g_command_bytes = 0;
constinit uint8_t g_row[2 * kCommandRoom] = {};
constinit size_t g_row_bytes = 0;

void put_number(uint64_t value) {
  if (g_row_bytes + wire::kMaxVarint <= sizeof(g_row))
    g_row_bytes = static_cast<size_t>(wire::put_varint(g_row + g_row_bytes, value) - g_row);
}

void put_text(const char* s, size_t length) {
  const size_t room = sizeof(g_row) - g_row_bytes - wire::kMaxVarint;
  if (length > room) length = room;
  put_number(length);
  memcpy(g_row + g_row_bytes, s, length);
  g_row_bytes += length;
}

// Whole small file of /proc; its length, 0 when it can't be read.
size_t read_small(const char* path, char* out, size_t room) {
  const int fd = sys::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  long n = 0;
  do {
    n = sys::read(fd, out, room);
  } while (n == -EINTR);
  sys::close(fd);
  return n > 0 ? static_cast<size_t>(n) : 0;
}

}  // namespace

void process_facts_init(int argc, char** argv) {
  g_command_bytes = 0;
  for (int i = 0; i < argc && argv[i] != nullptr; ++i) {
    const size_t bytes = strlen(argv[i]) + 1;
    if (g_command_bytes + bytes > kCommandRoom) break;  // a longer command line is cut at an argument
    memcpy(g_command + g_command_bytes, argv[i], bytes);
    g_command_bytes += bytes;
  }
}

void process_row_prepare(const char* option_text) {
  char exe[1024];
  const long exe_bytes = sys::readlink("/proc/self/exe", exe, sizeof(exe));
  struct {
    char system[65], node[65], release[65], version[65], machine[65], domain[65];
  } host{};
  sys::call(SYS_uname, sys::word(&host));
  g_row_bytes = 0;
  put_number(static_cast<uint64_t>(sys::pid()));
  put_number(static_cast<uint64_t>(sys::call(SYS_getppid)));
  put_number(facts().start_time);
  put_number(facts().start_wall_ns);
  put_number(clock_kind());
  put_number(facts().live_exact ? 1 : 0);
  put_number(sink_image());
  put_number(facts().parent_pid);
  put_text(exe, exe_bytes > 0 ? static_cast<size_t>(exe_bytes) : 0);
  put_text(g_command, g_command_bytes);
  put_text(option_text, strlen(option_text));
  put_text(TRACEAF_VERSION, strlen(TRACEAF_VERSION));
  put_text(host.node, strnlen(host.node, sizeof(host.node)));
}

ProcessRow process_row() { return {g_row, g_row_bytes}; }

void read_resident(uint64_t* now, uint64_t* peak) {
  char text[256];
  const size_t n = read_small("/proc/self/statm", text, sizeof(text) - 1);
  text[n] = 0;
  const char* at = text;
  while (*at != 0 && *at != ' ') ++at;
  uint64_t pages = 0;
  if (*at == ' ') ++at;
  for (; *at >= '0' && *at <= '9'; ++at) pages = pages * 10 + static_cast<uint64_t>(*at - '0');
  *now = pages * facts().page_size;
  rusage usage{};
  sys::call(SYS_getrusage, RUSAGE_SELF, sys::word(&usage));
  *peak = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  if (*peak < *now) *peak = *now;
}

size_t read_thread_name(int tid, char* out, size_t room) {
  char path[64] = "/proc/self/task/";
  size_t n = strlen(path);
  char digits[12];
  size_t d = 0;
  for (int rest = tid; rest > 0; rest /= 10) digits[d++] = static_cast<char>('0' + rest % 10);
  while (d > 0) path[n++] = digits[--d];
  memcpy(path + n, "/comm", 6);
  n = tid > 0 ? read_small(path, out, room) : 0;
  if (n > 0 && out[n - 1] == '\n') --n;
  return n;
}

}  // namespace traceaf::emitter
