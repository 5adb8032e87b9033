// Generations (see generation.h).
#include "emitter/generation.h"

#include "emitter/batch_writer.h"
#include "emitter/clock.h"
#include "emitter/context_tree.h"
#include "emitter/counters.h"
#include "emitter/modules.h"
#include "emitter/process_facts.h"
#include "emitter/region.h"
#include "emitter/session.h"
#include "emitter/sink.h"
#include "emitter/slots.h"
#include "emitter/spans/spans.h"
#include "emitter/types.h"

namespace traceaf::emitter {

constinit Mutex g_flush;

namespace {

constinit uint64_t g_last = 0;            // the last generation number used
constinit uint64_t g_begin_time[2] = {};  // by parity: ticks at the start of the generation
constinit uint64_t g_begin_wall[2] = {};  // and the wall clock then
constinit uint64_t g_last_sync_wall = 0;

// How long the advancer waits for a thread to leave its section. Only a realloc of many GiB, a thread stopped by a
// debugger, or one that left a signal handler by longjmp takes that long.
constexpr uint64_t kPatienceNs = 10ull * 1000 * 1000 * 1000;

void write_sync_and_info(uint64_t gen) {
  uint64_t wall = g_begin_wall[gen & 1];
  // Go's validator wants all three clocks to rise from one generation to the next; the wall clock may be set back.
  if (wall <= g_last_sync_wall) wall = g_last_sync_wall + 1;
  g_last_sync_wall = wall;
  uint8_t body[64];
  uint8_t* at = body;
  *at++ = static_cast<uint8_t>(wire::Ev::kSync);
  *at++ = static_cast<uint8_t>(wire::Ev::kFrequency);
  at = wire::put_varint(at, kClockFrequency);
  *at++ = static_cast<uint8_t>(wire::Ev::kClockSnapshot);
  const uint64_t begin = g_begin_time[gen & 1];
  at = wire::put_varint(at, 0);
  at = wire::put_varint(at, begin * kNsPerTick);
  at = wire::put_varint(at, wall / 1000000000);
  at = wire::put_varint(at, wall % 1000000000);
  write_batch(false, gen, wire::kNoThread, begin, body, static_cast<size_t>(at - body));
  at = body;
  *at++ = wire::kBatchInfo;
  at = wire::put_varint(at, facts().min_addr);
  at = wire::put_varint(at, facts().page_size);
  at = wire::put_varint(at, wire::kMinHeapAlign);
  at = wire::put_varint(at, wire::kFixedStack);
  write_batch(true, gen, wire::kNoThread, begin, body, static_cast<size_t>(at - body));
}

// Makes `gen` current: from here on writers use it.
void publish(uint64_t gen) {
  types_prepare(gen);
  g_last = gen;
  const uint64_t now = clock_begin_generation(gen);
  g_begin_time[gen & 1] = now;
  g_begin_wall[gen & 1] = clock_wall_ns();
  g_generation_bytes.store(0, std::memory_order_relaxed);
  g_generation_due.store(now + settings().generation_ns / kNsPerTick, std::memory_order_relaxed);
  g_tail->generation.store(gen, std::memory_order_relaxed);
  g_generation.store(gen, std::memory_order_seq_cst);  // see Section::enter_record
}

// ---- draining ------------------------------------------------------------------------------------------------------

struct Drained {
  static constexpr unsigned kAtOnce = 128;
  wire::SlotHeader* slots[kAtOnce];
  unsigned n = 0;
  bool ok = true;

  // Bytes first, then the slots: until the output has them a killed process still has the slots.
  void settle() {
    if (n == 0) return;
    const int error = sink_flush();
    if (error != 0) {
      if (ok) stop_for_error("cannot write", error);
      ok = false;
      n = 0;
      return;
    }
    for (unsigned i = 0; i < n; ++i) slot_free(slots[i]);
    n = 0;
  }
};

void take_slot(void* context, wire::SlotHeader* slot) {
  auto* drained = static_cast<Drained*>(context);
  if (!drained->ok) return;
#ifdef TRACEAF_BREAK_LOSE_BATCH
  // Broken on purpose, for the test that a lost batch is noticed.
  static int n = 0;
  if (slot->kind == wire::kSlotEvents && ++n % 8 == 0) {
    slot_free(slot);
    return;
  }
#endif
  const uint32_t used = slot->used.load(std::memory_order_acquire);
  if (used > 0) write_batch(slot->kind == wire::kSlotRows, slot->gen, slot->m, slot->time, slot_body(slot), used);
  drained->slots[drained->n++] = slot;
  if (drained->n == Drained::kAtOnce) drained->settle();
}

bool drain(uint64_t gen) {
  static Drained drained;  // 1 KiB, too much for some stacks; flush lock
  drained.n = 0;
  drained.ok = true;
  // Behind by a quarter of the buffer: threads would soon wait for slots.
  sink_hurry(slots_full() > slots_limit() / (sink_hurries() ? 16 : 4));
  slots_drain(gen, take_slot, &drained);
  drained.settle();
  return drained.ok;
}

// ---- closing -------------------------------------------------------------------------------------------------------

// Waits until no section of `gen` is open. False when `record` is stuck in one.
bool wait_until_left(const ThreadRecord& record, uint64_t gen) {
  const uint64_t begin = clock_ns();
  uint64_t nap = 20 * 1000;
  for (unsigned turn = 0;; ++turn) {
    if (record.writing.load(std::memory_order_seq_cst) == 0) return true;
    const uint64_t inside = record.section_gen.load(std::memory_order_relaxed);
    if (inside > gen && inside != kStandbySection) return true;
    if (turn < 64) {
      sys::yield();
      continue;
    }
    if (clock_ns() - begin > kPatienceNs || thread_is_gone(record)) return false;
    drain(gen);  // it may be waiting for a free slot
    sys::sleep_ns(nap);
    if (nap < 1000 * 1000) nap *= 2;
  }
}

void seal_all(uint64_t gen) {
  sections_see_generation();
  for (ThreadRecord* r = first_thread_record(); r != nullptr; r = r->next) {
    if (!r->in_use.load(std::memory_order_acquire)) continue;
    if (wait_until_left(*r, gen)) {
      seal_streams(r, gen);
      continue;
    }
    // What it committed is read; its slots are never used again, so that a late write harms nobody.
    count(wire::Counter::k_stuck_threads);
    for (Stream& stream : r->streams[gen & 1]) {
      if (stream.gen != gen || stream.slot == nullptr) continue;
      wire::SlotHeader* slot = stream.slot;
      write_batch(slot->kind == wire::kSlotRows, slot->gen, slot->m, slot->time, slot_body(slot),
                  slot->used.load(std::memory_order_acquire));
      stream.drop_slot();
    }
  }
}

struct TypeTable {
  TableWriter& out;
};

void write_type(void* context, uint32_t id, const TypeEntry& type) {
  TableWriter& out = static_cast<TypeTable*>(context)->out;
  const ContextNode* node = context_node(type.node);
  const Module* module = node == nullptr ? nullptr : module_by_id(module_of_origin(node->origin));
  char name[wire::kMaxStringLength];
  size_t length = 0;
  const char* path = module != nullptr ? module->path : "";
  size_t path_bytes = module != nullptr ? module->path_bytes : 0;
  for (size_t i = 0; i < path_bytes; ++i)
    if (path[i] == '/') {
      path += i + 1;
      path_bytes -= i + 1;
      i = static_cast<size_t>(-1);
    }
  if (path_bytes > 900) path_bytes = 900;
  for (; length < path_bytes; ++length) name[length] = path[length];
  const uint64_t offset = node == nullptr ? 0 : node->ra - (module != nullptr ? module->start : 0);
  if (length > 0) name[length++] = '+';
  name[length++] = '0';
  name[length++] = 'x';
  bool digits = false;
  for (int shift = 60; shift >= 0; shift -= 4) {
    const unsigned digit = (offset >> shift) & 15;
    digits = digits || digit != 0 || shift == 0;
    if (digits) name[length++] = "0123456789abcdef"[digit];
  }
  out.entry(length + 5 * wire::kMaxVarint);
  out.number(id);
  out.number(node == nullptr ? 0 : node->ra);
  out.number(type.size);
  out.number(0);  // pointer bytes: unknown for native types
  out.text(name, length);
}

void write_thread_rows(TableWriter& out, uint64_t gen) {
  char name[64];
  for (const ThreadRecord* r = first_thread_record(); r != nullptr; r = r->next) {
    if (!r->in_use.load(std::memory_order_acquire) || r->status_gen != gen) continue;
    RowBytes row;
    row.number(r->m).number(static_cast<uint64_t>(r->tid)).number(r->birth_time).number(r->flags);
    row.number(r->stack_lo).number(r->stack_bytes);
    out.row(wire::Row::kThread, row, name, read_thread_name(r->tid, name, sizeof(name)));
  }
}

void write_counters(TableWriter& out) {
  uint64_t now = 0;
  uint64_t peak = 0;
  read_resident(&now, &peak);
  set_counter(wire::Counter::k_rss_bytes, now);
  set_counter(wire::Counter::k_rss_peak_bytes, peak);
  set_counter(wire::Counter::k_own_bytes, g_own_bytes.load(std::memory_order_relaxed));
  set_counter(wire::Counter::k_context_nodes, context_nodes());
  set_counter(wire::Counter::k_lost_spans, spans::lost());
  count(wire::Counter::k_generations);
  uint64_t uncounted = 0;
  for (const ThreadRecord* r = first_thread_record(); r != nullptr; r = r->next)
    uncounted += r->uncounted_events.load(std::memory_order_relaxed);
  RowBytes row;
  row.number(clock_ticks()).number(sizeof(wire::kCounters) / sizeof(wire::kCounters[0]));
  for (const auto& spec : wire::kCounters)
    row.number(spec.number)
        .number(g_counters[spec.number].load(std::memory_order_relaxed) +
                (spec.number == static_cast<uint8_t>(wire::Counter::k_events) ? uncounted : 0));
  out.row(wire::Row::kCounters, row);
}

struct End {
  wire::EndReason reason;
  int status;
};

bool write_tables(uint64_t gen, const End* end) {
  const uint64_t now = clock_ticks();
  {
    TableWriter rows(wire::kBatchRows, gen, now);
    if (g_process_row_generation.load(std::memory_order_relaxed) != gen) {
      const ProcessRow process = process_row();
      rows.entry(process.size + 2 * wire::kMaxVarint);
      rows.number(static_cast<uint64_t>(wire::Row::kProcess));
      rows.text(reinterpret_cast<const char*>(process.data), process.size);
    }
    write_thread_rows(rows, gen);
    write_counters(rows);
    if (end != nullptr) {
      RowBytes row;
      row.number(now).number(static_cast<uint64_t>(end->reason)).number(static_cast<uint32_t>(end->status));
      rows.row(wire::Row::kEnd, row);
    }
  }
  {
    TableWriter types(wire::kBatchTypes, gen, now);
    TypeTable table{types};
    types_of_generation(gen, write_type, &table);
  }
  const auto end_of_generation = static_cast<uint8_t>(wire::Ev::kEndOfGeneration);
  sink_bytes(&end_of_generation, 1);
  const int error = sink_end_generation();
  if (error != 0) {
    stop_for_error("cannot write", error);
    return false;
  }
  g_tail->closed.store(gen, std::memory_order_release);
  return true;
}

void begin_output(uint64_t gen) {
  sink_begin_generation();
  write_sync_and_info(gen);
}

bool close(uint64_t gen, bool start_next, const End* end) {
  generation_reap();
  if (start_next) {
    publish(gen + 1);
  } else {
    g_generation_due.store(~uint64_t{0}, std::memory_order_relaxed);
    g_generation.store(0, std::memory_order_seq_cst);
    g_tail->generation.store(0, std::memory_order_relaxed);
  }
  seal_all(gen);
  if (!drain(gen) || !write_tables(gen, end)) return false;
  if (start_next) begin_output(gen + 1);
  return true;
}

}  // namespace

void generation_begin() {
  publish(g_last + 1);
  begin_output(g_last);
  sections_see_generation();
  // Standby sections that were entered before: what they do to the live set must precede a snapshot.
  for (ThreadRecord* r = first_thread_record(); r != nullptr; r = r->next)
    if (r->in_use.load(std::memory_order_acquire)) wait_until_left(*r, g_last - 1);
}

bool generation_drain() {
  const uint64_t gen = g_generation.load(std::memory_order_relaxed);
  return gen == 0 || drain(gen);
}

bool generation_advance(bool start_next) {
  const uint64_t gen = g_generation.load(std::memory_order_relaxed);
  return gen == 0 || close(gen, start_next, nullptr);
}

bool generation_finish(wire::EndReason reason, int status) {
  const End end{reason, status};
  const uint64_t gen = g_generation.load(std::memory_order_relaxed);
  if (gen != 0) return close(gen, false, &end);
  const uint64_t last = ++g_last;
  types_prepare(last);
  g_begin_time[last & 1] = clock_begin_generation(last);
  g_begin_wall[last & 1] = clock_wall_ns();
  begin_output(last);
  return write_tables(last, &end);
}

void generation_reap() {
  for (ThreadRecord* r = first_thread_record(); r != nullptr; r = r->next) {
    if (!r->in_use.load(std::memory_order_acquire) || !thread_is_gone(*r)) continue;
    r->writing.store(0, std::memory_order_relaxed);  // it may have died inside a section (cancelled in a handler)
    r->busy = 0;
    r->flags |= wire::kThreadEnded;
    count_events(*r);
    if (r->announced || r->stack_live.load(std::memory_order_relaxed)) {
      Section section = Section::enter_as(r);
      if (section.ok()) {
        const uint64_t now = section.now();
        if (r->stack_live.exchange(false, std::memory_order_relaxed))
          section.event(wire::Ev::kGoroutineStackFree, now, (r->stack_lo - facts().min_addr) / wire::kFixedStack);
        section.event(wire::Ev::kGoDestroySyscall, now);
        const uint64_t gen = section.generation();
        section.leave();
        seal_streams(r, gen);
      }
    }
    thread_record_release(r);
  }
}

bool generation_is_large() { return g_generation_bytes.load(std::memory_order_relaxed) >= settings().generation_bytes; }

void generation_skip() { ++g_last; }

}  // namespace traceaf::emitter
