// Tables of a generation (see tables.h).
#include "reader/tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "emitter/wire/varint.h"

namespace traceaf::reader {
namespace {

using wire::Ev;

constexpr uint8_t number(Ev ev) { return static_cast<uint8_t>(ev); }
constexpr uint64_t kMaxFrames = 128;  // Go's reader refuses a deeper stack

// Nanoseconds of a wall clock, held at the largest value rather than wrapped.
uint64_t wall_ns(uint64_t sec, uint64_t nsec) {
  uint64_t out = 0;
  if (__builtin_mul_overflow(sec, uint64_t{1'000'000'000}, &out) || __builtin_add_overflow(out, nsec, &out)) {
    return ~uint64_t{0};
  }
  return out;
}

std::optional<TableFault> parse_sync(const Batch& batch, std::span<const uint8_t> body, Sync* sync) {
  int frequencies = 0;
  int clocks = 0;
  auto fault = for_each_entry(body, [&](const TableEntry& entry) {
    if (entry.type == number(Ev::kFrequency)) {
      ++frequencies;
      sync->frequency = entry.values[0];
    } else if (entry.type == number(Ev::kClockSnapshot)) {
      ++clocks;
      sync->time = batch.time + entry.values[0];
      sync->mono_ns = entry.values[1];
      sync->wall_ns = wall_ns(entry.values[2], entry.values[3]);
    }
  });
  if (fault) return fault;
  if (frequencies != 1)
    return TableFault{0, fmt::format("expected one Frequency in a Sync batch, found {}", frequencies)};
  if (clocks != 1) return TableFault{0, fmt::format("expected one ClockSnapshot in a Sync batch, found {}", clocks)};
  if (sync->frequency == 0) return TableFault{0, "expected a frequency above 0, found 0"};
  return {};
}

std::optional<TableFault> parse_info(std::span<const uint8_t> bytes, HeapInfo* info) {
  const uint8_t* at = bytes.data();
  const uint8_t* const end = at + bytes.size();
  for (uint64_t* field : {&info->min_addr, &info->page_size, &info->min_align, &info->fixed_stack}) {
    at = wire::get_varint(at, end, field);
    if (at == nullptr) return TableFault{1, "expected four integers in the info batch, found fewer or malformed ones"};
  }
  if (info->page_size == 0 || info->min_align == 0 || info->fixed_stack == 0) {
    return TableFault{1, "expected sizes above 0 in the info batch, found 0"};
  }
  return {};
}

}  // namespace

bool is_structural(uint8_t first_byte) {
  return first_byte == number(Ev::kStrings) || first_byte == number(Ev::kStacks) ||
         first_byte == number(Ev::kCPUSamples) || first_byte == number(Ev::kFrequency) ||
         first_byte == number(Ev::kSync);
}

Error batch_error(const Generation& gen, const Batch& batch, const std::string& file, size_t at, std::string message) {
  Error error;
  error.file = file;
  error.offset = batch.body_offset + at;
  error.generation = gen.number;
  error.batch = batch.number;
  error.message = std::move(message);
  if (batch.from_tail) error.message += " (in the tail)";
  return error;
}

std::optional<TableFault> for_each_entry(std::span<const uint8_t> body,
                                         const std::function<void(const TableEntry&)>& visit) {
  const uint8_t* const begin = body.data();
  const uint8_t* const end = begin + body.size();
  const uint8_t* at = begin;
  std::vector<uint64_t> values;
  const uint8_t family = body.empty() ? 0 : body[0];
  while (at != end) {
    TableEntry entry;
    entry.at = static_cast<size_t>(at - begin);
    entry.type = *at;
    const auto bad = [&](std::string message) { return TableFault{entry.at, std::move(message)}; };
    const auto* const spec = wire::find_event(entry.type);
    const bool opening = at == begin && entry.type != number(Ev::kFrequency);
    const bool fits = opening || (family == number(Ev::kStrings) && entry.type == number(Ev::kString)) ||
                      (family == number(Ev::kStacks) && entry.type == number(Ev::kStack)) ||
                      (family == number(Ev::kCPUSamples) && entry.type == number(Ev::kCPUSample)) ||
                      ((family == number(Ev::kSync) || family == number(Ev::kFrequency)) &&
                       (entry.type == number(Ev::kFrequency) || entry.type == number(Ev::kClockSnapshot)));
    if (!fits) {
      return bad(
          fmt::format("expected an entry of the table {}, found event {}", wire::find_event(family)->name, entry.type));
    }
    ++at;
    const auto read = [&](size_t n) {
      for (size_t i = 0; i < n; ++i) {
        uint64_t value = 0;
        at = wire::get_varint(at, end, &value);
        if (at == nullptr) return false;
        values.push_back(value);
      }
      return true;
    };
    values.clear();
    if (!read(wire::argument_count(*spec))) {
      return bad(
          fmt::format("expected the integers of {}, found the end of the batch or a longer integer", spec->name));
    }
    if (entry.type == number(Ev::kString)) {
      const uint64_t length = values[1];
      if (length > wire::kMaxStringLength) {
        return bad(fmt::format("expected a string of at most {} bytes, found {}", wire::kMaxStringLength, length));
      }
      if (length > static_cast<size_t>(end - at)) {
        return bad(fmt::format("expected {} bytes of a string, found {}", length, end - at));
      }
      entry.text = {at, static_cast<size_t>(length)};
      at += length;
    } else if (entry.type == number(Ev::kStack)) {
      const uint64_t frames = values[1];
      if (frames > kMaxFrames)
        return bad(fmt::format("expected a stack of at most {} frames, found {}", kMaxFrames, frames));
      if (!read(4 * static_cast<size_t>(frames))) {
        return bad(
            fmt::format("expected {} frames of a stack, found the end of the batch or a longer integer", frames));
      }
    }
    entry.values = values;
    visit(entry);
  }
  return {};
}

Failure index_generation(Generation& gen, const std::string& file, std::optional<Sync>* sync,
                         std::optional<HeapInfo>* info) {
  std::vector<std::pair<uint64_t, uint32_t>> events;
  for (uint32_t i = 0; i < gen.batches.size(); ++i) {
    const Batch& batch = gen.batches[i];
    const auto body = gen.body(batch);
    if (body.empty()) continue;
    if (batch.experiment == wire::kExperimentAllocFree) {
      ExperimentalData data;
      data.kind = body[0];
      data.m = batch.m;
      data.time = batch.time;
      data.bytes = body.subspan(1);
      data.offset = batch.body_offset + 1;
      data.from_tail = batch.from_tail;
      gen.experimental.push_back(data);
      if (data.kind == wire::kBatchInfo) {
        HeapInfo found;
        if (auto fault = parse_info(data.bytes, &found)) {
          return batch_error(gen, batch, file, fault->at, std::move(fault->message));
        }
        *info = found;
      }
    } else if (batch.experiment != 0) {
      continue;  // an experiment that we do not know
    } else if (body[0] == number(Ev::kSync) || body[0] == number(Ev::kFrequency)) {
      Sync found;
      if (auto fault = parse_sync(batch, body, &found)) {
        return batch_error(gen, batch, file, fault->at, std::move(fault->message));
      }
      if (*sync) return batch_error(gen, batch, file, 0, "expected one Sync batch in a generation, found a second");
      *sync = found;
    } else if (!is_structural(body[0])) {
      events.emplace_back(batch.m, i);
    }
  }
  std::sort(events.begin(), events.end());
  for (const auto& [m, batch] : events) {
    if (gen.threads.empty() || gen.threads.back().m != m) gen.threads.push_back({m, {}});
    gen.threads.back().batches.push_back(batch);
  }
  std::stable_sort(gen.experimental.begin(), gen.experimental.end(),
                   [](const ExperimentalData& a, const ExperimentalData& b) { return a.m < b.m; });
  return {};
}

Failure for_each_type(const Generation& gen, const std::function<void(const TypeEntry&)>& visit) {
  Failure first;
  for (const auto& data : gen.experimental) {
    if (data.kind != wire::kBatchTypes) continue;
    const uint8_t* at = data.bytes.data();
    const uint8_t* const end = at + data.bytes.size();
    while (at != end) {
      const uint8_t* const row = at;
      TypeEntry entry;
      uint64_t length = 0;
      for (uint64_t* field : {&entry.id, &entry.address, &entry.size, &entry.pointer_bytes, &length}) {
        if (at != nullptr) at = wire::get_varint(at, end, field);
      }
      if (at == nullptr || length > static_cast<size_t>(end - at)) {
        Error error;
        error.offset = data.offset + static_cast<uint64_t>(row - data.bytes.data());
        error.generation = gen.number;
        error.message =
            "expected a row of the type table (id address size pointer_bytes name), found a malformed or cut one";
        if (!first) first = std::move(error);
        break;
      }
      entry.name = {reinterpret_cast<const char*>(at), static_cast<size_t>(length)};
      at += length;
      visit(entry);
    }
  }
  return first;
}

TimeScale::TimeScale(uint64_t frequency) {
  const auto freq = static_cast<unsigned __int128>(frequency == 0 ? 1 : frequency);
  for (shift_ = 64;; --shift_) {
    const auto multiplier = (static_cast<unsigned __int128>(1'000'000'000) << shift_) / freq;
    if (multiplier <= ~uint64_t{0} || shift_ == 0) {
      // Rounded up, so that whole ns do not come out one short.
      const bool exact = multiplier * freq == (static_cast<unsigned __int128>(1'000'000'000) << shift_);
      multiplier_ = static_cast<uint64_t>(multiplier) + (exact || multiplier == ~uint64_t{0} ? 0 : 1);
      return;
    }
  }
}

}  // namespace traceaf::reader
