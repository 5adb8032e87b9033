// The states off, standby and on, and the life of a trace (see session.h).
#include "emitter/session.h"

#include <sys/auxv.h>
#include <cstring>

#ifdef TRACEAF_CHECK_CAPTURE
#include "emitter/check_capture.h"
#endif
#include "emitter/clock.h"
#include "emitter/counters.h"
#include "emitter/error_text.h"
#include "emitter/flusher.h"
#include "emitter/generation.h"
#include "emitter/live_set.h"
#include "emitter/modules.h"
#include "emitter/own_file.h"
#include "emitter/process_facts.h"
#include "emitter/raw_log.h"
#include "emitter/region.h"
#include "emitter/section.h"
#include "emitter/sink.h"
#include "emitter/slots.h"
#include "emitter/span_sink.h"
#include "emitter/spans/maps.h"
#include "emitter/sys.h"

namespace traceaf::emitter {

using wire::RecordState;

constinit SessionFacts g_facts = {};

namespace {

constinit std::atomic<uint32_t> g_first_gate{kGateUninitialised};
constinit Mutex g_session;  // one change of state at a time; never taken inside a section
constinit std::atomic<uint32_t> g_init{0};
constinit Options g_options;
constinit RecordState g_state = RecordState::kOff;
constinit bool g_failed = false;            // no further recording in this process image
constinit bool g_parameters_fixed = false;  // memory was sized by depth, buffer and out
constinit std::atomic<int> g_pid{0};
constinit bool g_fork_session = false, g_fork_flush = false;  // what fork_prepare could lock
constinit char g_option_text[Options::kPatternRoom] = {};

void set_gate(uint32_t value) { g_gate->store(value, std::memory_order_seq_cst); }

void remember_option_text(const char* text) {
  size_t n = text == nullptr ? 0 : strlen(text);
  if (n >= sizeof(g_option_text)) n = sizeof(g_option_text) - 1;
  if (n > 0) memcpy(g_option_text, text, n);
  g_option_text[n] = 0;
}

// ---- start and stop, under g_session -------------------------------------------------------------------------------

// Output and tail. On failure nothing is recorded, the program runs on, and one line says why.
bool open_files() {
  if (sink_is_open()) return true;
  g_facts.start_time = clock_ticks();
  g_facts.start_wall_ns = clock_wall_ns();
  int error = sink_open(g_options.out, g_facts.start_wall_ns, g_options.compress);
  if (error != 0) {
    LogLine line;
    line.text("cannot create the trace ").text(g_options.out).text(": ").text(error_text(error));
    line.text("; the program runs untraced");
    return false;
  }
  char tail[OwnFile::kPathRoom];
  const size_t length = strlen(sink_path());
  memcpy(tail, sink_path(), length);
  memcpy(tail + length, ".tail", 6);
  error = tail_create(tail, g_options.buffer_bytes);
  if (error != 0) {
    LogLine line;
    line.text("cannot create ").text(tail).text(": ").text(error_text(error)).text("; the program runs untraced");
    sink_discard();
    return false;
  }
  g_tail->pid = static_cast<uint32_t>(sys::pid());
  g_tail->clock_freq = kClockFrequency;
  g_tail->min_addr = g_facts.min_addr;
  g_tail->page_size = g_facts.page_size;
  g_tail->start_time = g_facts.start_time;
  g_tail->start_mono_ns = g_facts.start_time * kNsPerTick;
  g_tail->start_wall_ns = g_facts.start_wall_ns;
  g_parameters_fixed = true;
  process_row_prepare(g_option_text);
  return true;
}

void announce_stacks(Section& section) {
  for (ThreadRecord* r = first_thread_record(); r != nullptr; r = r->next) {
    if (!r->in_use.load(std::memory_order_acquire)) continue;
    if ((r->flags & wire::kThreadMain) != 0 && r->stack_bytes == 0 && r->stack_bounds.hi != 0) {
      char buffer[1024];
      spans::Mapping stack{};
      if (spans::find_mapping(r->stack_bounds.hi - 1, buffer, sizeof(buffer), &stack) == spans::Found::kYes) {
        r->stack_lo = stack.start;
        r->stack_bytes = stack.end - stack.start;
      }
    }
    if (r->stack_bytes == 0) continue;
    section.event(wire::Ev::kGoroutineStack, section.now(), stack_id(r->stack_lo), stack_order(r->stack_bytes));
    r->stack_live.store(true, std::memory_order_relaxed);
  }
}

void mark(Section& section, wire::MarkerKind kind) {
  RowBytes row;
  row.number(section.now()).number(static_cast<uint64_t>(kind)).text("", 0);
  section.row(wire::Row::kMarker, row);
}

// A generation with everything that exists: process, stacks, spans and (when it is known) the live blocks.
void begin_writing() {
  process_row_prepare(g_option_text);
  g_flush.lock();
  if (live_set_active()) live_set_begin_snapshot();
  generation_begin();
  g_flush.unlock();
  set_gate(kGateOn);
  Section section = Section::enter();
  if (!section.ok()) return;
  const ProcessRow process = process_row();
  if (section.row_bytes(wire::Row::kProcess, process.data, process.size))
    g_process_row_generation.store(section.generation(), std::memory_order_relaxed);
  mark(section, wire::MarkerKind::kOn);
  announce_stacks(section);
  snapshot_spans(section);
  if (live_set_active()) live_set_snapshot(section);
}

void end_writing(wire::MarkerKind kind) {
  {
    Section section = Section::enter();
    if (section.ok()) mark(section, kind);
  }
  g_flush.lock();
  generation_advance(false);
  g_flush.unlock();
}

void change_locked(RecordState to) {
  if (to == g_state || (g_failed && to != RecordState::kOff)) return;
  const Inside inside;
  const RecordState from = g_state;
  if (to != RecordState::kOff && !open_files()) {
    g_failed = true;
    set_gate(kGateOff);
    return;
  }
  g_state = to;
  if (g_facts.began) count(wire::Counter::k_toggles);
  // Blocks that were born while nothing followed them are unknown from now on.
  if (from == RecordState::kOff) g_facts.live_exact = g_facts.live_exact && !g_facts.began;
  if (from == RecordState::kOn && !live_set_active()) g_facts.live_exact = false;
  g_facts.began = true;
  switch (to) {
    case RecordState::kOn:
      if (from == RecordState::kOff) live_set_stop();
      begin_writing();
      break;
    case RecordState::kStandby:
      live_set_start();
      set_gate(kGateStandby);
      if (from == RecordState::kOn) end_writing(wire::MarkerKind::kStandby);
      break;
    case RecordState::kOff:
      set_gate(kGateOff);
      if (from == RecordState::kOn) end_writing(wire::MarkerKind::kOff);
      live_set_stop();
      spans::reset();
      break;
  }
  if (g_tail == nullptr) return;
  g_tail->state.store(static_cast<uint32_t>(g_state), std::memory_order_release);
  if (to == RecordState::kOff) flusher_start();  // nobody else would hear a request to go on again
}

// The option text asks for something else, or is faulty.
void apply_options(const char* text) {
  Options fresh = g_options;
  const OptionError error = parse_options(text, &fresh);
  if (error.accepted != nullptr) {
    LogLine line;
    line.text("TRACEALLOCFREE: \"").text(error.item).text("\" is not understood (accepted: ").text(error.accepted);
    line.text("); the program runs untraced");
    fresh = g_options;
    fresh.state = RecordState::kOff;
  }
  if (g_parameters_fixed) {
    fresh.depth = g_options.depth;
    fresh.buffer_bytes = g_options.buffer_bytes;
    fresh.compress = g_options.compress;
    memcpy(fresh.out, g_options.out, sizeof(fresh.out));
  }
  g_options = fresh;
  remember_option_text(text);
}

// follow=0: children must not see an option text that would make them record. The text keeps its length, so it is
// rewritten where it stands: "1,follow=0,depth=9" becomes
// "1,,depth=9,,,,,,,0": the same words and a 0 last, which wins.
void hide_from_children(char* text) {
  const size_t length = strlen(text);
  char* at = strstr(text, "follow=0");
  if (at == nullptr) return;
  constexpr size_t kWord = 8;
  memmove(at, at + kWord, length - static_cast<size_t>(at - text) - kWord);
  memset(text + length - kWord, ',', kWord);
  text[length - 1] = '0';
}

// Tries for a bounded time: in a signal handler the owner may be this very thread, interrupted.
bool lock_patiently(Mutex& mutex, unsigned ms) {
  for (unsigned i = 0; i < ms * 5; ++i) {
    if (mutex.try_lock()) return true;
    sys::sleep_ns(200 * 1000);
  }
  return false;
}

}  // namespace

constinit std::atomic<uint32_t>* g_gate = &g_first_gate;

const Options& settings() { return g_options; }
bool guard_enabled() { return g_options.guard; }
bool own_process() { return sys::pid() == g_pid.load(std::memory_order_relaxed); }

uint64_t stack_id(uint64_t lo) { return (lo - g_facts.min_addr) / wire::kFixedStack; }

uint64_t stack_order(uint64_t bytes) {
  uint64_t order = 1;
  while ((uint64_t{1} << (order - 1)) < bytes) ++order;
  return order;
}

void process_init(int argc, char** argv, char** envp) {
  uint32_t never = 0;
  if (!g_init.compare_exchange_strong(never, 1, std::memory_order_acq_rel)) return;
  const Inside inside;
  clock_init();
  sections_init();
  process_facts_init(argc, argv);
  g_pid.store(sys::pid(), std::memory_order_relaxed);
  const unsigned long page = getauxval(AT_PAGESZ);
  g_facts.page_size = page != 0 ? page : 4096;
  char buffer[1024];
  uintptr_t lowest = spans::break_start(buffer, sizeof(buffer));
  if (lowest == 0) lowest = spans::break_now();  // no /proc: blocks obtained before now lie below, and their ids wrap
  g_facts.min_addr = lowest & ~(g_facts.page_size - 1);
  g_facts.live_exact = true;
  auto* page_of_gate = static_cast<std::atomic<uint32_t>*>(own_map(4096));
  if (page_of_gate == nullptr || sys::failed(sys::advise(page_of_gate, 4096, MADV_WIPEONFORK))) {
    // Without it a child of a raw fork would write into our slots: such a system (Linux before 4.14) is not recorded.
    LogLine().text("this kernel lacks MADV_WIPEONFORK; the program runs untraced");
    g_failed = true;
    set_gate(kGateOff);
    return;
  }
  g_gate = page_of_gate;
  if (getauxval(AT_SECURE) != 0) {
    g_failed = true;  // the environment of a set-user-id program is not to be trusted
    return;
  }
  constexpr char kName[] = "TRACEALLOCFREE=";
  char* text = nullptr;
  for (char** variable = envp; variable != nullptr && *variable != nullptr; ++variable)
    if (strncmp(*variable, kName, sizeof(kName) - 1) == 0) text = *variable + sizeof(kName) - 1;
  const Locked lock(g_session);
  apply_options(text);
  if (text != nullptr && !g_options.follow) hide_from_children(text);
  change_locked(g_options.state);
  if (g_state == RecordState::kOff) g_facts.live_exact = false;  // births from here on are not seen
}

void option_changed(const char* value) {
  if (g_init.load(std::memory_order_acquire) == 0 || !own_process()) return;
  const Inside inside;
  const Locked lock(g_session);
  apply_options(value);
  change_locked(g_options.state);
}

bool try_change_state(RecordState state) {
  if (!g_session.try_lock()) return false;
  g_options.state = state;
  change_locked(state);
  g_session.unlock();
  return true;
}

void stop_for_error(const char* what, int error) {
  set_gate(kGateOff);
  g_generation_due.store(~uint64_t{0}, std::memory_order_relaxed);
  g_generation.store(0, std::memory_order_seq_cst);
  g_failed = true;
  count(wire::Counter::k_output_errors);
  g_tail->state.store(static_cast<uint32_t>(RecordState::kOff), std::memory_order_relaxed);
  g_tail->ended.store(static_cast<uint32_t>(wire::EndReason::kDisk), std::memory_order_release);
  // The tail stays: it holds what did not reach the output.
  LogLine()
      .text(what)
      .text(" ")
      .text(sink_path())
      .text(": ")
      .text(error_text(error))
      .text("; recording ends here, the program runs on");
}

void process_ending(wire::EndReason reason, int status, bool last) {
  if (!own_process() || g_init.load(std::memory_order_acquire) == 0) return;
  const Inside inside;
  if (!lock_patiently(g_session, 2000)) return;  // the tail keeps what there is
  if (sink_is_open() && !g_failed) {
    if (last) flusher_stop();
    if (lock_patiently(g_flush, 2000)) {
      const bool writing = g_state == RecordState::kOn;
      if (last) set_gate(kGateOff);
      if (generation_finish(reason, status)) {
        if (!last && writing) generation_begin();
        g_tail->ended.store(static_cast<uint32_t>(reason), std::memory_order_release);
        // Before an exec the tail's name goes only when no other thread can still write to it. (If the exec then fails,
        // recording goes on; only a kill -9 later on would cost the part that is not yet in the output.)
        if (last || live_thread_count() <= 1) tail_unlink();
      }
      if (last) g_failed = true;
      g_flush.unlock();
    }
  }
  g_session.unlock();
#ifdef TRACEAF_CHECK_CAPTURE
  check_capture_report();
#endif
}

void begin_child_session() {
  const Inside inside;
  const Locked lock(g_session);
  if (gate() != kGateChild) return;
  const RecordState wanted = g_state;
  g_state = RecordState::kOff;
  set_gate(kGateOff);
  g_facts.began = false;
  g_facts.live_exact = g_facts.live_exact && live_set_active();  // the parent's live set came along with the memory
  if (wanted == RecordState::kOn && live_set_active()) {
    change_locked(RecordState::kStandby);
    change_locked(RecordState::kOn);
  } else {
    change_locked(wanted);
  }
}

void fork_prepare() {
  if (!own_process()) return;
  const Inside inside;
  // Bounded: a fork from a signal handler may have interrupted the owner. The child resets every lock anyway.
  g_fork_session = lock_patiently(g_session, 200);
  flusher_stop();
  g_fork_flush = lock_patiently(g_flush, 200);
  spans::before_fork();
}

void fork_parent() {
  if (!own_process()) return;
  const Inside inside;
  spans::after_fork_parent();
  if (g_fork_flush) g_flush.unlock();
  flusher_resume();
  if (g_fork_session) g_session.unlock();
}

void fork_child() {
  const int parent = g_pid.load(std::memory_order_relaxed);
  if (sys::pid() == parent || g_init.load(std::memory_order_relaxed) == 0) return;
  const Inside inside;
  g_pid.store(sys::pid(), std::memory_order_relaxed);
  g_session.reset();
  g_flush.reset();
  flusher_after_fork();
  tail_forget();
  sink_forget();
  counters_reset();
  thread_records_after_fork();
  sections_init();
  live_set_after_fork();
  spans::after_fork();
  modules_after_fork();
  g_generation.store(0, std::memory_order_relaxed);
  g_generation_due.store(~uint64_t{0}, std::memory_order_relaxed);
  generation_skip();
  g_facts.parent_pid = static_cast<uint64_t>(parent);
  const bool follow = g_options.follow && !g_failed && g_state != RecordState::kOff;
  if (!follow) g_state = RecordState::kOff;
  set_gate(follow ? kGateChild : kGateOff);
}

void modules_changing() { modules_unload_begin(); }
void modules_changed() { modules_unload_end(); }

void flusher_park() {
  if (own_process()) flusher_stop();
}
void flusher_unpark() {
  if (own_process()) flusher_resume();
}

void thread_begin(const void* stack_lo, size_t stack_bytes) {
  if (inside_recorder()) return;
  const Inside inside;
  ThreadRecord* record = thread_record();
  if (record == nullptr) return;
  const auto lo = reinterpret_cast<uintptr_t>(stack_lo);
  record->stack_lo = lo;
  record->stack_bytes = stack_bytes;
  record->stack_bounds = {lo, lo + stack_bytes};
  Section section = Section::enter();
  if (!section.ok()) return;
  // libc hands the stack of an ended thread to the next one, perhaps before we saw that it is gone.
  for (ThreadRecord* r = first_thread_record(); r != nullptr; r = r->next) {
    if (r == record || !r->stack_live.load(std::memory_order_relaxed)) continue;
    if (r->stack_lo >= lo + stack_bytes || r->stack_lo + r->stack_bytes <= lo) continue;
    if (!r->stack_live.exchange(false, std::memory_order_relaxed)) continue;
    r->gone.store(true, std::memory_order_relaxed);
    section.event(wire::Ev::kGoroutineStackFree, section.now(), stack_id(r->stack_lo));
  }
  section.event(wire::Ev::kGoroutineStackAlloc, section.now(), stack_id(lo), stack_order(stack_bytes));
  record->stack_live.store(true, std::memory_order_relaxed);
}

void thread_end() {
  ThreadRecord* record = thread_record_if_known();
  if (record == nullptr || inside_recorder()) return;
  const Inside inside;
  record->leaving.store(true, std::memory_order_relaxed);
  flusher_thread_ended();
}

}  // namespace traceaf::emitter
