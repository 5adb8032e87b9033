// A set of disjoint spans in address order: a skip list in own memory, so that insert, remove and lookup take O(log n)
// and neighbours are one step away. Not thread-safe except epoch(). Each change goes to the Sink as it is made.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "emitter/spans/page_cache.h"
#include "emitter/spans/spans.h"

namespace traceaf::emitter::spans {

class IntervalSet {
 public:
  static constexpr unsigned kMaxHeight = 12;  // one node in 4 reaches the next level: enough for 16 M spans

  struct Node {
    uintptr_t base, end;
    uint64_t serial;  // of the change that gave the span its present range; never used twice
    uint32_t object_size;
    uint16_t kind_class;
    wire::SpanSource source;
    uint8_t height : 4;
    uint8_t inferred : 1;
    uint8_t cached : 1;  // some thread's Cache may hold the range

    Node** links() { return reinterpret_cast<Node**>(this + 1); }
    Node* const* links() const { return reinterpret_cast<Node* const*>(this + 1); }
    const Node* next() const { return links()[0]; }
    Span span() const { return {base, end - base, kind_class, object_size, source, inferred != 0}; }
  };

  constexpr IntervalSet() = default;
  IntervalSet(const IntervalSet&) = delete;
  IntervalSet& operator=(const IntervalSet&) = delete;

  // The span that holds `at`, or nullptr.
  const Node* find(uintptr_t at) const;
  // The first span that ends behind `at`, or nullptr.
  const Node* first(uintptr_t at) const;

  // Adds `span` in place of whatever it overlaps: overlapped spans are freed and what remains of them is announced as
  // new spans. Slabs and large extents have no parts: they go whole. nullptr when memory ran out (counted in lost()).
  const Node* insert(Sink& sink, const Span& span);
  // Adds the part of `span` around `at` that no other span holds; a neighbour of the same source inside `span` grows
  // instead. `at` must lie in `span` and in no span of the set.
  const Node* fill(Sink& sink, uintptr_t at, const Span& span);
  // Takes [lo, hi) away from every span whose serial is at most `up_to`.
  void remove(Sink& sink, uintptr_t lo, uintptr_t hi, uint64_t up_to = ~uint64_t{0});
  void erase(Sink& sink, const Node* node);
  // Moves the bounds of `node` outwards, over whatever lies there: freed and announced again.
  void grow(Sink& sink, const Node* node, uintptr_t base, uintptr_t end);

  // The caller puts the node's range into a Cache, which stays valid until epoch() changes.
  void mark_cached(const Node* node) { const_cast<Node*>(node)->cached = 1; }
  // Rises when a range that was marked lost addresses. Read without lock (relaxed): a stale value can only matter for
  // an address that is gone, and the reader holds a live object at the address that it asks for.
  uint64_t epoch() const { return epoch_.load(std::memory_order_relaxed); }

  size_t size() const { return size_; }
  uint64_t serial() const { return serial_; }
  uint64_t lost() const { return lost_; }
  // Pages of slabs and large extents are dropped from it when these go. May be nullptr.
  void attach(PageCache* pages) { pages_ = pages; }
  // Forgets all spans without telling anyone. abandon() touches no node: for a set that a fork caught in mid-change.
  void clear();
  void abandon();

 private:
  struct Block {
    Block* next;
  };
  using Path = Node** [kMaxHeight];  // at each level the link that leads to the place searched

  const Node* floor(uintptr_t at) const;
  void seek(uintptr_t base, Path& path);
  Node* allocate();
  void release(Node* node);
  Node* link(const Span& span);
  void unlink(Node* node);
  void retire(const Node& node);
  void cut(Sink& sink, Node* node, uintptr_t lo, uintptr_t hi);

  alignas(64) std::atomic<uint64_t> epoch_{1};  // an all-zero Cache is out of date
  alignas(64) Node* head_[kMaxHeight] = {};
  Node* free_[kMaxHeight + 1] = {};
  Block* blocks_ = nullptr;
  uintptr_t room_ = 0, room_end_ = 0;
  size_t size_ = 0;
  uint64_t serial_ = 0;
  uint64_t lost_ = 0;
  uint64_t random_ = 0x9e3779b97f4a7c15;
  PageCache* pages_ = nullptr;
};

}  // namespace traceaf::emitter::spans
