// traceaf on, off, standby and status (see control.h).
#include "reader/launcher/control.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <optional>

#include "emitter/wire/tail.h"
#include "reader/launcher/say.h"
#include "reader/views/units.h"
#include "reader/views/wording.h"

namespace traceaf::launcher {
namespace {

using wire::RecordState;
using wire::TailHeader;

constexpr auto kPatience = 2000;  // ms until an answer is given up
constexpr auto kPoll = 5;         // ms between looks at the state

std::string state_name(uint32_t state) {
  switch (static_cast<RecordState>(state)) {
    case RecordState::kOff:
      return "off";
    case RecordState::kStandby:
      return "standby";
    case RecordState::kOn:
      return "on";
  }
  return fmt::format("in unknown state {}", state);
}

// /proc/PID/maps writes a newline in a path as \012.
std::string unescaped(const std::string& path) {
  std::string out;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path.compare(i, 4, "\\012") == 0) {
      out += '\n';
      i += 3;
    } else {
      out += path[i];
    }
  }
  return out;
}

struct Maps {
  std::vector<std::string> tails;  // mapped files *.tail, each once
  bool library = false;            // libtraceaf.so is mapped
  int error = 0;                   // errno of reading them
};

Maps read_maps(pid_t pid) {
  Maps maps;
  std::ifstream in(fmt::format("/proc/{}/maps", pid));
  std::string line;
  errno = 0;
  bool any = false;
  while (std::getline(in, line)) {
    any = true;
    const size_t slash = line.find('/');
    if (slash == std::string::npos) continue;
    const std::string path = unescaped(line.substr(slash));
    maps.library = maps.library || path.find("/libtraceaf.so") != std::string::npos;
    static constexpr std::string_view kTail = ".tail";
    if (path.size() < kTail.size() || path.compare(path.size() - kTail.size(), kTail.size(), kTail) != 0) continue;
    if (std::find(maps.tails.begin(), maps.tails.end(), path) == maps.tails.end()) maps.tails.push_back(path);
  }
  if (!any) maps.error = errno != 0 ? errno : EACCES;
  return maps;
}

// A line "Name:\tfields" of /proc/PID/status; empty when there is none.
std::string status_field(pid_t pid, const std::string& name) {
  std::ifstream in(fmt::format("/proc/{}/status", pid));
  std::string line;
  while (std::getline(in, line)) {
    if (line.rfind(name + ":\t", 0) == 0) return line.substr(name.size() + 2);
  }
  return {};
}

// The tail of a process, mapped. Not copyable: it unmaps.
class Tail {
 public:
  ~Tail() {
    if (header_ != nullptr) munmap(header_, wire::kTailHeaderBytes);
  }
  Tail() = default;
  Tail(const Tail&) = delete;
  Tail& operator=(const Tail&) = delete;

  // `path` as the process sees it. Returns why it is not the tail of `pid`, empty when it is.
  std::string open(pid_t pid, const std::string& path) {
    const std::string full = fmt::format("/proc/{}/root{}", pid, path);
    const int fd = ::open(full.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return fmt::format("{}: {}", path, strerror(errno));
    struct stat info {
    }, process{};
    void* at = MAP_FAILED;
    std::string wrong;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < static_cast<off_t>(wire::kTailHeaderBytes)) {
      wrong = path + " is no tail of a trace";
    } else if (stat(fmt::format("/proc/{}", pid).c_str(), &process) == 0 && info.st_uid != process.st_uid &&
               info.st_uid != 0 && process.st_uid != 0) {
      wrong = path + " belongs to another user than the process";
    } else {
      at = mmap(nullptr, wire::kTailHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (at == MAP_FAILED) wrong = fmt::format("{}: {}", path, strerror(errno));
    }
    close(fd);
    if (!wrong.empty()) return wrong;
    header_ = static_cast<TailHeader*>(at);
    if (header_->magic != wire::kTailMagic) return path + " is no tail of a trace";
    if (header_->version != wire::kTailVersion) {
      return fmt::format("{} has version {}, this program knows {}", path, header_->version, wire::kTailVersion);
    }
    // In a pid namespace the process knows itself by the last of its numbers.
    const std::string numbers = status_field(pid, "NSpid");
    const std::string own = numbers.empty() ? fmt::format("{}", pid) : numbers.substr(numbers.find_last_of(" \t") + 1);
    if (fmt::format("{}", header_->pid) != own) return path + " was made by another process, which forked this one";
    return {};
  }
  [[nodiscard]] TailHeader& header() const { return *header_; }

 private:
  TailHeader* header_ = nullptr;
};

std::string process_text(pid_t pid) {
  const std::string name = status_field(pid, "Name");
  return name.empty() ? fmt::format("process {}", pid) : fmt::format("process {} ({})", pid, name);
}

void describe(pid_t pid, const std::string& path, const TailHeader& header) {
  using reader::views::format_count;
  const auto counter = [&](uint8_t n) { return header.counters[n].load(std::memory_order_relaxed); };
  const std::string trace = path.substr(0, path.rfind(".tail"));
  std::string said = fmt::format("{}: {}, trace {}", process_text(pid), state_name(header.state.load()), trace);
  if (const uint64_t generation = header.generation.load(); generation != 0) {
    said += fmt::format(", generation {} ({} written)", generation, header.closed.load());
  }
  said += fmt::format(", {}", reader::views::count_of(counter(static_cast<uint8_t>(wire::Counter::k_events)), "event"));
  std::string lost;
  for (const auto& spec : wire::kCounters) {
    const uint64_t value = counter(spec.number);
    if (value == 0 || !reader::views::counts_loss(spec.number)) continue;
    lost += fmt::format("{}{} {}", lost.empty() ? "" : ", ", spec.name, format_count(value));
  }
  said += ", losses: " + (lost.empty() ? "none" : lost);
  fmt::print("{}\n", said);
}

void ring(TailHeader& header) {
  header.bell.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &header.bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

int change(pid_t pid, const std::string& path, TailHeader& header, RecordState wanted) {
  const auto target = static_cast<uint32_t>(wanted);
  const uint32_t before = header.state.load(std::memory_order_acquire);
  if (before == target) {
    fmt::print("{}: already {}\n", process_text(pid), state_name(target));
    return kOk;
  }
  header.request.store(target + 1, std::memory_order_release);  // the recorder takes it by an acquiring exchange
  ring(header);
  for (int waited = 0; waited < kPatience; waited += kPoll) {
    if (header.state.load(std::memory_order_acquire) == target) {
      fmt::print("{}: now {}, was {}; trace {}\n", process_text(pid), state_name(target), state_name(before),
                 path.substr(0, path.rfind(".tail")));
      return kOk;
    }
    if (header.ended.load(std::memory_order_acquire) != 0 || access(fmt::format("/proc/{}", pid).c_str(), F_OK) != 0) {
      say(fmt::format("process {} ended before it answered", pid));
      return kFailed;
    }
    const timespec pause{0, kPoll * 1000000};
    nanosleep(&pause, nullptr);
  }
  // Take the request back, so that it does not surprise anyone later.
  uint32_t ours = target + 1;
  header.request.compare_exchange_strong(ours, 0);
  say(fmt::format("{} did not answer within {} s: it is stopped, or recording has ended; still {}", process_text(pid),
                  kPatience / 1000, state_name(header.state.load())));
  return kFailed;
}

std::optional<pid_t> parse_pid(const std::string& text) {
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  const pid_t pid = std::stoi(text);
  return pid == 0 ? std::nullopt : std::optional<pid_t>(pid);
}

int act(const std::string& verb, pid_t pid) {
  if (access(fmt::format("/proc/{}", pid).c_str(), F_OK) != 0) {
    say(fmt::format("there is no process {}", pid));
    return kFailed;
  }
  const Maps maps = read_maps(pid);
  if (maps.error != 0) {
    say(fmt::format("{} cannot be examined: {}", process_text(pid), strerror(maps.error)));
    return kFailed;
  }
  std::string wrong;
  for (const std::string& path : maps.tails) {
    Tail tail;
    wrong = tail.open(pid, path);
    if (!wrong.empty()) continue;
    if (verb == "status") {
      describe(pid, path, tail.header());
      return kOk;
    }
    const RecordState wanted = verb == "on"    ? RecordState::kOn
                               : verb == "off" ? RecordState::kOff
                                               : RecordState::kStandby;
    return change(pid, path, tail.header(), wanted);
  }
  if (!wrong.empty()) {
    say(fmt::format("{}: {}", process_text(pid), wrong));
  } else if (maps.library) {
    say(fmt::format("{} has libtraceaf.so, but recording was never prepared; start it by `traceaf record --standby`",
                    process_text(pid)));
  } else {
    say(fmt::format("{} is not traced: libtraceaf.so is not in it; start it by `traceaf record`", process_text(pid)));
  }
  return kFailed;
}

}  // namespace

int control(const std::string& verb, const std::vector<std::string>& words) {
  const std::string help = verb == "status" ? "Says whether a process is being recorded, and what was lost."
                                            : "Switches the recorder of a running process: " + verb + ".";
  CLI::App app{help, "traceaf " + verb};
  std::string text;
  app.add_option("PID", text, "process that was started with libtraceaf.so")->required()->option_text(" ");
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 wants them
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return kOk;
  } catch (const CLI::ParseError& error) {
    say(fmt::format("{} (see traceaf {} --help)", error.what(), verb));
    return kUsage;
  }
  const auto pid = parse_pid(text);
  if (!pid.has_value()) {
    say(fmt::format("'{}' is no process number", text));
    return kUsage;
  }
  return act(verb, *pid);
}

}  // namespace traceaf::launcher
