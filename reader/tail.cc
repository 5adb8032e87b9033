// Reading a tail (see tail.h).
#include "reader/tail.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <tuple>

#include "reader/input.h"

namespace traceaf::reader {
namespace {

// No sound tail has more; a corrupt header must not keep us busy for hours.
constexpr uint64_t kMaxSlots = 1 << 20;
constexpr size_t kMaxTailBytes = size_t{1} << 30;

// Plain copies of the fields that the recorder shares by atomics.
template <typename T>
T field(const uint8_t* base, size_t offset) {
  T value;
  memcpy(&value, base + offset, sizeof value);
  return value;
}
#define TRACEAF_HEADER_FIELD(type, name) field<type>(header, offsetof(wire::TailHeader, name))
#define TRACEAF_SLOT_FIELD(type, name) field<type>(slot, offsetof(wire::SlotHeader, name))

// Copies [offset, offset + n) of the tail to `out`; returns how many bytes there are.
using Fetch = std::function<size_t(uint64_t offset, uint8_t* out, size_t n)>;

Error tail_error(const std::string& name, std::string message, std::optional<uint64_t> offset) {
  Error error;
  error.file = name;
  error.offset = offset;
  error.message = std::move(message);
  return error;
}

struct SlotFields {
  uint32_t state, kind, used;
  uint64_t gen, m, time;
  explicit SlotFields(const uint8_t* slot)
      : state(TRACEAF_SLOT_FIELD(uint32_t, state)),
        kind(TRACEAF_SLOT_FIELD(uint32_t, kind)),
        used(TRACEAF_SLOT_FIELD(uint32_t, used)),
        gen(TRACEAF_SLOT_FIELD(uint64_t, gen)),
        m(TRACEAF_SLOT_FIELD(uint64_t, m)),
        time(TRACEAF_SLOT_FIELD(uint64_t, time)) {}
  [[nodiscard]] bool same_batch(const SlotFields& other) const {
    return other.state != wire::kSlotFree && kind == other.kind && gen == other.gen && m == other.m &&
           time == other.time;
  }
};

// What is wrong with a slot that is not free, or nothing.
std::string slot_fault(const SlotFields& slot) {
  if (slot.state > wire::kSlotFull)
    return fmt::format("expected a slot state up to {}, found {}", +wire::kSlotFull, slot.state);
  if (slot.kind > wire::kSlotRows)
    return fmt::format("expected a slot kind up to {}, found {}", +wire::kSlotRows, slot.kind);
  if (slot.used > wire::kSlotBody)
    return fmt::format("expected at most {} bytes in a slot, found {}", wire::kSlotBody, slot.used);
  return "";
}

void note(TailState& tail, const std::string& name, std::string message, uint64_t offset) {
  if (!tail.fault) tail.fault = tail_error(name, std::move(message), offset);
}

void read_slot(TailState& tail, const Fetch& fetch, const std::string& name, uint64_t index) {
  const uint64_t at = wire::kTailHeaderBytes + index * wire::kSlotBytes;
  uint8_t raw[wire::kSlotHeaderBytes];
  if (fetch(at, raw, sizeof raw) != sizeof raw) {
    ++tail.damaged_slots;
    note(tail, name, fmt::format("expected slot {}, found the end of the tail", index), at);
    return;
  }
  const SlotFields before(raw);
  if (before.state == wire::kSlotFree) return;
  const std::string fault = slot_fault(before);
  if (!fault.empty()) {
    ++tail.damaged_slots;
    note(tail, name, fault, at);
    return;
  }
  // A slot just claimed has used = 0 and no generation yet.
  if (before.used == 0) return;
  if (before.gen == 0) {
    ++tail.damaged_slots;
    note(tail, name, "expected a slot of a generation from 1, found 0", at);
    return;
  }
  if (tail.bytes.size() + before.used > kMaxTailBytes) {
    ++tail.damaged_slots;
    note(tail, name, fmt::format("expected a tail of at most {} bytes of batches, found more", kMaxTailBytes), at);
    return;
  }
  TailSlot slot;
  slot.gen = before.gen;
  slot.m = before.m;
  slot.time = before.time;
  slot.rows = before.kind == wire::kSlotRows;
  slot.offset = at + wire::kSlotHeaderBytes;
  slot.begin = tail.bytes.size();
  tail.bytes.resize(slot.begin + before.used);
  const size_t got = fetch(slot.offset, tail.bytes.data() + slot.begin, before.used);
  if (got != before.used) {
    note(tail, name,
         fmt::format("expected {} bytes in slot {}, found {} up to the end of the tail", before.used, index, got), at);
    tail.bytes.resize(slot.begin + got);
  } else if (fetch(at, raw, sizeof raw) == sizeof raw && !before.same_batch(SlotFields(raw))) {
    // Flushed and perhaps reused meanwhile: the batch is in the output, which is read after the tail.
    tail.bytes.resize(slot.begin);
    return;
  }
  slot.end = tail.bytes.size();
  if (slot.end != slot.begin) tail.slots.push_back(slot);
}

Result<TailState> read_from(const Fetch& fetch, uint64_t size, const std::string& name) {
  uint8_t header[sizeof(wire::TailHeader)];
  if (size < wire::kTailHeaderBytes || fetch(0, header, sizeof header) != sizeof header) {
    return tail_error(name, fmt::format("expected a tail of at least {} bytes, found {}", wire::kTailHeaderBytes, size),
                      0);
  }
  if (TRACEAF_HEADER_FIELD(uint64_t, magic) != wire::kTailMagic) {
    return tail_error(name, fmt::format("expected the tail's magic \"taftail1\", found {}", quote_bytes({header, 8})),
                      0);
  }
  const auto version = TRACEAF_HEADER_FIELD(uint32_t, version);
  if (version != wire::kTailVersion) {
    return tail_error(name, fmt::format("expected tail version {}, found {}", wire::kTailVersion, version),
                      offsetof(wire::TailHeader, version));
  }
  const auto header_bytes = TRACEAF_HEADER_FIELD(uint32_t, header_bytes);
  const auto slot_bytes = TRACEAF_HEADER_FIELD(uint32_t, slot_bytes);
  if (header_bytes != wire::kTailHeaderBytes || slot_bytes != wire::kSlotBytes) {
    return tail_error(name,
                      fmt::format("expected a tail with a header of {} and slots of {} bytes, found {} and {}",
                                  wire::kTailHeaderBytes, wire::kSlotBytes, header_bytes, slot_bytes),
                      offsetof(wire::TailHeader, header_bytes));
  }
  TailState tail;
  tail.pid = TRACEAF_HEADER_FIELD(uint32_t, pid);
  tail.clock_freq = TRACEAF_HEADER_FIELD(uint64_t, clock_freq);
  tail.min_addr = TRACEAF_HEADER_FIELD(uint64_t, min_addr);
  tail.page_size = TRACEAF_HEADER_FIELD(uint64_t, page_size);
  tail.start_time = TRACEAF_HEADER_FIELD(uint64_t, start_time);
  tail.start_mono_ns = TRACEAF_HEADER_FIELD(uint64_t, start_mono_ns);
  tail.start_wall_ns = TRACEAF_HEADER_FIELD(uint64_t, start_wall_ns);
  tail.closed = TRACEAF_HEADER_FIELD(uint64_t, closed);
  // Read before the slots: once it is set, every slot is final.
  tail.ended = TRACEAF_HEADER_FIELD(uint32_t, ended);
  if (tail.clock_freq == 0) {
    return tail_error(name, "expected a clock frequency above 0, found 0", offsetof(wire::TailHeader, clock_freq));
  }

  uint64_t slots = TRACEAF_HEADER_FIELD(uint32_t, slots);
  const uint64_t room = (size - wire::kTailHeaderBytes + wire::kSlotBytes - 1) / wire::kSlotBytes;
  if (slots > room) {
    note(tail, name, fmt::format("expected {} slots, found room for {}", slots, room),
         offsetof(wire::TailHeader, slots));
    slots = room;
  }
  for (uint64_t i = 0; i < std::min(slots, kMaxSlots); ++i) read_slot(tail, fetch, name, i);

  // The counters are read last, so that they are not older than the slots.
  if (fetch(0, header, sizeof header) == sizeof header) {
    tail.state = TRACEAF_HEADER_FIELD(uint32_t, state);
    tail.generation = TRACEAF_HEADER_FIELD(uint64_t, generation);
    for (size_t i = 0; i < wire::kCounterSlots; ++i) {
      tail.counters[i] = field<uint64_t>(header, offsetof(wire::TailHeader, counters) + i * sizeof(uint64_t));
    }
  }
  std::stable_sort(tail.slots.begin(), tail.slots.end(), [](const TailSlot& a, const TailSlot& b) {
    return std::tie(a.gen, a.m, a.rows, a.time) < std::tie(b.gen, b.m, b.rows, b.time);
  });
  return tail;
}

}  // namespace

size_t TailState::first_above(uint64_t number) const {
  return static_cast<size_t>(
      std::partition_point(slots.begin(), slots.end(), [&](const TailSlot& s) { return s.gen <= number; }) -
      slots.begin());
}

Result<TailState> read_tail(const std::string& file) {
  struct stat st {};
  if (stat(file.c_str(), &st) != 0)
    return tail_error(file, fmt::format("expected a tail, found none ({})", strerror(errno)), {});
  if (!S_ISREG(st.st_mode)) return tail_error(file, "expected a regular file as tail, found something else", {});
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return tail_error(
        file, fmt::format("expected a readable tail, found that it cannot be opened ({})", strerror(errno)), {});
  const Fetch fetch = [fd](uint64_t offset, uint8_t* out, size_t n) {
    size_t done = 0;
    while (done < n) {
      const ssize_t got = pread(fd, out + done, n - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  };
  auto result = read_from(fetch, fstat(fd, &st) == 0 ? static_cast<uint64_t>(st.st_size) : 0, file);
  close(fd);
  return result;
}

Result<TailState> read_tail_bytes(std::span<const uint8_t> bytes, const std::string& name) {
  const Fetch fetch = [bytes](uint64_t offset, uint8_t* out, size_t n) -> size_t {
    if (offset >= bytes.size()) return 0;
    n = std::min<size_t>(n, bytes.size() - offset);
    memcpy(out, bytes.data() + offset, n);
    return n;
  };
  return read_from(fetch, bytes.size(), name);
}

}  // namespace traceaf::reader
