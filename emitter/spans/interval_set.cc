// Skip list of disjoint spans (see interval_set.h).
#include "emitter/spans/interval_set.h"

#include <bit>

#include "emitter/region.h"

namespace traceaf::emitter::spans {

namespace {

constexpr size_t kBlockBytes = size_t{256} << 10;

// Spans that exist as a whole or not at all: a part of a slab is no slab.
bool indivisible(wire::SpanSource source) {
  return source == wire::SpanSource::kSlab || source == wire::SpanSource::kLarge;
}

}  // namespace

// ---- nodes --------------------------------------------------------------------------------------------------------

IntervalSet::Node* IntervalSet::allocate() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  const unsigned climbs = static_cast<unsigned>(std::countr_zero(random_ | (uint64_t{1} << 62))) / 2;
  const unsigned height = climbs + 1 < kMaxHeight ? climbs + 1 : kMaxHeight;
  Node* node = free_[height];
  if (node != nullptr) {
    free_[height] = node->links()[0];
  } else {
    const size_t bytes = sizeof(Node) + height * sizeof(Node*);
    if (room_end_ - room_ < bytes) {
      // No memory: the caller counts a lost span; the program sees nothing.
      auto* block = static_cast<Block*>(own_map(kBlockBytes));
      if (block == nullptr) return nullptr;
      block->next = blocks_;
      blocks_ = block;
      room_ = reinterpret_cast<uintptr_t>(block + 1);
      room_end_ = reinterpret_cast<uintptr_t>(block) + kBlockBytes;
    }
    node = reinterpret_cast<Node*>(room_);
    room_ += bytes;
  }
  node->height = height & 15;
  return node;
}

void IntervalSet::release(Node* node) {
  node->links()[0] = free_[node->height];
  free_[node->height] = node;
}

void IntervalSet::clear() {
  Block* block = blocks_;
  while (block != nullptr) {
    Block* next = block->next;
    own_unmap(block, kBlockBytes);
    block = next;
  }
  abandon();
}

void IntervalSet::abandon() {
  for (Node*& node : head_) node = nullptr;
  for (Node*& node : free_) node = nullptr;
  blocks_ = nullptr;
  room_ = room_end_ = 0;
  size_ = 0;
  epoch_.fetch_add(1, std::memory_order_relaxed);
  if (pages_ != nullptr) pages_->clear();
}

// ---- the list -----------------------------------------------------------------------------------------------------

// The last span that begins at or below `at`.
const IntervalSet::Node* IntervalSet::floor(uintptr_t at) const {
  const Node* below = nullptr;
  Node* const* links = head_;
  for (unsigned level = kMaxHeight; level-- > 0;) {
    while (links[level] != nullptr && links[level]->base <= at) {
      below = links[level];
      links = below->links();
    }
  }
  return below;
}

void IntervalSet::seek(uintptr_t base, Path& path) {
  Node** links = head_;
  for (unsigned level = kMaxHeight; level-- > 0;) {
    while (links[level] != nullptr && links[level]->base < base) links = links[level]->links();
    path[level] = &links[level];
  }
}

IntervalSet::Node* IntervalSet::link(const Span& span) {
  Node* node = allocate();
  if (node == nullptr) {
    ++lost_;
    return nullptr;
  }
  node->base = span.base;
  node->end = span.base + span.bytes;
  node->serial = ++serial_;
  node->object_size = static_cast<uint32_t>(span.object_size);
  node->kind_class = static_cast<uint16_t>(span.kind_class);
  node->source = span.source;
  node->inferred = span.inferred ? 1 : 0;
  node->cached = 0;
  Path path;
  seek(span.base, path);
  for (unsigned level = 0; level < node->height; ++level) {
    node->links()[level] = *path[level];
    *path[level] = node;
  }
  ++size_;
  return node;
}

void IntervalSet::unlink(Node* node) {
  Path path;
  seek(node->base, path);
  for (unsigned level = 0; level < node->height; ++level) *path[level] = node->links()[level];
  --size_;
  release(node);
}

const IntervalSet::Node* IntervalSet::find(uintptr_t at) const {
  const Node* node = floor(at);
  return node != nullptr && at < node->end ? node : nullptr;
}

const IntervalSet::Node* IntervalSet::first(uintptr_t at) const {
  const Node* node = floor(at);
  if (node == nullptr) return head_[0];
  return at < node->end ? node : node->next();
}

// ---- changes ------------------------------------------------------------------------------------------------------

// What others remember of a range that loses addresses becomes invalid.
void IntervalSet::retire(const Node& node) {
  if (node.cached) epoch_.fetch_add(1, std::memory_order_relaxed);
  if (pages_ != nullptr && indivisible(node.source)) pages_->drop(node.base, node.end);
}

void IntervalSet::cut(Sink& sink, Node* node, uintptr_t lo, uintptr_t hi) {
  const bool whole = indivisible(node->source);
  const bool left = !whole && node->base < lo;
  const bool right = !whole && node->end > hi;
  const uintptr_t end = node->end;
  sink.free(sink.context, node->base);
  retire(*node);
  if (!left && !right) {
    unlink(node);
    return;
  }
  // Changing the base in place keeps the order: nothing else lies in the old range.
  if (left) {
    node->end = lo;
  } else {
    node->base = hi;
  }
  node->serial = ++serial_;
  node->cached = 0;
  sink.alloc(sink.context, node->span());
  if (left && right) {
    Span rest = node->span();
    rest.base = hi;
    rest.bytes = end - hi;
    if (link(rest) != nullptr) sink.alloc(sink.context, rest);
  }
}

void IntervalSet::remove(Sink& sink, uintptr_t lo, uintptr_t hi, uint64_t up_to) {
  auto* node = const_cast<Node*>(first(lo));
  while (node != nullptr && node->base < hi) {
    Node* next = node->links()[0];
    if (node->serial <= up_to) cut(sink, node, lo, hi);
    node = next;
  }
}

void IntervalSet::erase(Sink& sink, const Node* node) { cut(sink, const_cast<Node*>(node), node->base, node->end); }

const IntervalSet::Node* IntervalSet::insert(Sink& sink, const Span& span) {
  remove(sink, span.base, span.base + span.bytes);
  const Node* node = link(span);
  if (node != nullptr) sink.alloc(sink.context, span);
  return node;
}

const IntervalSet::Node* IntervalSet::fill(Sink& sink, uintptr_t at, const Span& span) {
  const Node* below = floor(at);
  const Node* above = below != nullptr ? below->next() : head_[0];
  Span gap = span;
  uintptr_t end = span.base + span.bytes;
  const bool below_inside = below != nullptr && below->end > gap.base;
  const bool above_inside = above != nullptr && above->base < end;
  if (below_inside) gap.base = below->end;
  if (above_inside) end = above->base;
  gap.bytes = end - gap.base;
  if (below_inside && below->source == span.source) {
    grow(sink, below, below->base, end);
    return below;
  }
  if (above_inside && above->source == span.source) {
    grow(sink, above, gap.base, above->end);
    return above;
  }
  return insert(sink, gap);
}

void IntervalSet::grow(Sink& sink, const Node* node, uintptr_t base, uintptr_t end) {
  auto* own = const_cast<Node*>(node);
  if (base < own->base) remove(sink, base, own->base);
  if (end > own->end) remove(sink, own->end, end);
  sink.free(sink.context, own->base);
  own->base = base < own->base ? base : own->base;
  own->end = end > own->end ? end : own->end;
  own->serial = ++serial_;
  sink.alloc(sink.context, own->span());
}

}  // namespace traceaf::emitter::spans
