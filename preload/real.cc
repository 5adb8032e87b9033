// Resolution of the next definitions (see real.h).
#include "preload/real.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>

#include "preload/elf_symbols.h"
#include "preload/next.h"
#include "preload/substitutes.h"

namespace traceaf::preload {

constinit CodeRange g_allocator_code{0, 0};
constinit CodeRange g_operators_code{0, 0};

void forget_operators();  // next.cc

namespace {

constinit std::atomic<bool> g_watching{false};
constinit std::atomic<bool> g_late_operators{false};  // a slot holds an operator of a library loaded later

const char* symbol_of(Function id) {
  switch (id) {
#define TRACEAF_FUNCTION(id_, symbol, group, entry, presence, type, doc) \
  case Function::k_##id_:                                                \
    return #symbol;
#include "preload/functions.inc"
#undef TRACEAF_FUNCTION
  }
  return "";
}

const link_map* own_object() {
  dl_find_object found;
  if (_dl_find_object(reinterpret_cast<void*>(&own_object), &found) != 0) return nullptr;
  return found.dlfo_link_map;
}

void set_object_code(CodeRange& range, void* function) {
  dl_find_object found;
  if (function == nullptr || _dl_find_object(function, &found) != 0) return;
  const auto start = reinterpret_cast<uintptr_t>(found.dlfo_map_start);
  range.start.store(start, std::memory_order_relaxed);
  range.bytes.store(reinterpret_cast<uintptr_t>(found.dlfo_map_end) - start, std::memory_order_relaxed);
}

// The loader's list as the order of lookup: what comes behind us first. A copy of us opened by dlopen stands behind
// libc, so the objects in front of it are asked last.
class Line {
 public:
  explicit Line(const link_map* own) : own_(own), head_(own) {
    while (head_->l_prev != nullptr) head_ = head_->l_prev;
  }
  [[nodiscard]] const link_map* head() const { return head_; }
  void* next(const char* name, const link_map** provider) const {
    for (const link_map* object = own_->l_next; object != nullptr; object = object->l_next) {
      if (void* found = of(object, name, provider)) return found;
    }
    for (const link_map* object = head_; object != own_; object = object->l_next) {
      if (void* found = of(object, name, provider)) return found;
    }
    return nullptr;
  }

 private:
  static void* of(const link_map* object, const char* name, const link_map** provider) {
    *provider = object;
    return find_symbol(object, name);
  }
  const link_map* own_;
  const link_map* head_;
};

using Table = void* [kFunctions];

void*& at(Table& table, Function id) { return table[static_cast<size_t>(id)]; }

// What the provider of malloc lacks, by what it has; by the next in line where it cannot be made.
void complete_family(Table& found, const Line& line) {
  const link_map* provider = nullptr;
  const auto make = [&found](Function id, auto* substitute) {
    if (at(found, id) == nullptr) at(found, id) = reinterpret_cast<void*>(substitute);
  };
  if (at(found, Function::k_memalign) == nullptr && at(found, Function::k_posix_memalign) == nullptr &&
      at(found, Function::k_aligned_alloc) == nullptr) {
    at(found, Function::k_memalign) = line.next("memalign", &provider);
  }
  if (at(found, Function::k_posix_memalign) != nullptr) {
    make(Function::k_memalign, &substitute::memalign_by_posix_memalign);
  } else {
    make(Function::k_memalign, &substitute::memalign_by_aligned_alloc);
  }
  make(Function::k_posix_memalign, &substitute::posix_memalign_by_memalign);
  make(Function::k_aligned_alloc, &substitute::aligned_alloc);
  make(Function::k_valloc, &substitute::valloc);
  make(Function::k_pvalloc, &substitute::pvalloc);
  make(Function::k_reallocarray, &substitute::reallocarray);
  make(Function::k_free_sized, &substitute::free_sized);
  make(Function::k_free_aligned_sized, &substitute::free_aligned_sized);
  if (at(found, Function::k_malloc_usable_size) == nullptr) {
    at(found, Function::k_malloc_usable_size) = line.next("malloc_usable_size", &provider);
  }
}

void find_all(Table& found, const Line& line, const link_map** allocator) {
  const link_map* ignored = nullptr;
  if (line.next("malloc", allocator) == nullptr) return;
  const bool whole = find_symbol(*allocator, "calloc") != nullptr && find_symbol(*allocator, "realloc") != nullptr &&
                     find_symbol(*allocator, "free") != nullptr;
#define TRACEAF_FIND_allocation(symbol) (whole ? find_symbol(*allocator, #symbol) : line.next(#symbol, &ignored))
#define TRACEAF_FIND_operators(symbol) line.next(#symbol, &ignored)
#define TRACEAF_FIND_mapping(symbol) line.next(#symbol, &ignored)
#define TRACEAF_FIND_threads(symbol) line.next(#symbol, &ignored)
#define TRACEAF_FIND_environment(symbol) line.next(#symbol, &ignored)
#define TRACEAF_FIND_process(symbol) line.next(#symbol, &ignored)
#define TRACEAF_FIND_loader(symbol) line.next(#symbol, &ignored)
#define TRACEAF_FUNCTION(id, symbol, group, entry, presence, type, doc) \
  at(found, Function::k_##id) = TRACEAF_FIND_##group(symbol);
#include "preload/functions.inc"
#undef TRACEAF_FUNCTION
  complete_family(found, line);
}

template <typename F>
inline constexpr bool kTakesBlock = false;
template <typename R, typename... A>
inline constexpr bool kTakesBlock<R(void*, A...)> = true;

extern "C" {
#define TRACEAF_FUNCTION(id, symbol, group, entry, presence, type, doc) void taf_on_##id();
#include "preload/functions.inc"
#undef TRACEAF_FUNCTION
}

// `on`: the wrapper, where the exported name goes while it must not go straight to the next definition.
template <typename F>
void set_slot(Slot<F>& slot, std::atomic<AnyFunction*>* off, AnyFunction* on, bool blocks, void* found) {
  if (found == nullptr) return;
  slot.at.store(reinterpret_cast<F*>(found), std::memory_order_release);
  if (off == nullptr) return;
  off->store(reinterpret_cast<AnyFunction*>(found), std::memory_order_seq_cst);
  // Pairs with watch_blocks(): whichever comes second sees the other, so `on` stays.
  if (blocks && kTakesBlock<F> && g_watching.load(std::memory_order_seq_cst)) off->store(on);
}

#define TRACEAF_OFF_OF_gated(id) &off_##id, &taf_on_##id
#define TRACEAF_OFF_OF_always(id) nullptr, nullptr
#define TRACEAF_BLOCKS_allocation true
#define TRACEAF_BLOCKS_operators true
#define TRACEAF_BLOCKS_mapping false
#define TRACEAF_BLOCKS_threads false
#define TRACEAF_BLOCKS_environment false
#define TRACEAF_BLOCKS_process false
#define TRACEAF_BLOCKS_loader false

void set_slots(Table& found) {
#define TRACEAF_FUNCTION(id, symbol, group, entry, presence, type, doc) \
  set_slot(next_##id, TRACEAF_OFF_OF_##entry(id), TRACEAF_BLOCKS_##group, at(found, Function::k_##id));
#include "preload/functions.inc"
#undef TRACEAF_FUNCTION
}

// dl_iterate_phdr: asks each object but our own for one operator.
struct Search {
  const char* name;
  const link_map* own;
  void* found;
};
int search_object(dl_phdr_info* object, size_t, void* context) {
  auto* search = static_cast<Search*>(context);
  const ElfW(Dyn)* dynamic = nullptr;
  for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
    if (object->dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    }
  }
  if (search->own != nullptr && search->own->l_ld == dynamic) return 0;
  search->found = find_symbol(object->dlpi_addr, dynamic, search->name);
  return search->found != nullptr ? 1 : 0;
}

}  // namespace

Resolved resolve(emitter::NextAllocator* info) {
  const link_map* own = own_object();
  if (own == nullptr) return Resolved::kFailed;
  const Line line(own);
  Table found{};
  const link_map* allocator = nullptr;
  find_all(found, line, &allocator);
  if (at(found, Function::k_malloc) == nullptr) return Resolved::kFailed;
  set_slots(found);
  set_object_code(g_allocator_code, at(found, Function::k_malloc));
  set_object_code(g_operators_code, at(found, Function::k_new_));
  info->malloc_address = at(found, Function::k_malloc);
  info->object_path = allocator->l_name;
  info->mallctl = reinterpret_cast<decltype(info->mallctl)>(find_symbol(allocator, "mallctl"));
  info->usable_size = next_malloc_usable_size.at.load(std::memory_order_relaxed);
  return line.head() == _r_debug.r_map ? Resolved::kYes : Resolved::kOtherNamespace;
}

void* find_loaded(Function id) {
  Search search{symbol_of(id), own_object(), nullptr};
  dl_iterate_phdr(&search_object, &search);
  return search.found;
}

void* resolve_operator(Function id) {
  void* const found = find_loaded(id);
  if (found == nullptr) return nullptr;
  set_object_code(g_operators_code, found);
  g_late_operators.store(true, std::memory_order_relaxed);
  switch (id) {
#define TRACEAF_FUNCTION(id_, symbol, group, entry, presence, type, doc)              \
  case Function::k_##id_:                                                             \
    set_slot(next_##id_, TRACEAF_OFF_OF_##entry(id_), TRACEAF_BLOCKS_##group, found); \
    break;
#include "preload/functions.inc"
#undef TRACEAF_FUNCTION
  }
  return found;
}

void recheck_operators() {
  if (g_late_operators.exchange(false, std::memory_order_relaxed)) forget_operators();
}

void watch_blocks() {
  if (g_watching.exchange(true, std::memory_order_seq_cst)) return;
#define TRACEAF_WATCH_gated(id, group, type) \
  if (TRACEAF_BLOCKS_##group && kTakesBlock<type>) off_##id.store(&taf_on_##id, std::memory_order_seq_cst);
#define TRACEAF_WATCH_always(id, group, type)
#define TRACEAF_FUNCTION(id, symbol, group, entry, presence, type, doc) TRACEAF_WATCH_##entry(id, group, type)
#include "preload/functions.inc"
#undef TRACEAF_FUNCTION
}

}  // namespace traceaf::preload
