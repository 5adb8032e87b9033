// Values by id, for ids that are dense in a sound trace but may be anything in a hostile one: most index a vector, ids
// far above the number of values asked for go to a hash map, so that memory follows the number of values and not the
// ids.
#pragma once

#include <tsl/robin_map.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace traceaf::reader {

template <typename T>
class IdTable {
 public:
  // The value of `id`, default-made when it is new. References hold until the next call.
  T& operator[](uint64_t id) {
    ++asked_;
    if (id < dense_.size()) return dense_[static_cast<size_t>(id)];
    if (id > 4 * asked_ + 1024) return sparse_[id];
    grow(static_cast<size_t>(id) + 1);
    return dense_[static_cast<size_t>(id)];
  }
  // nullptr, or a default value, when `id` was never asked for.
  T* find(uint64_t id) {
    if (id < dense_.size()) [[likely]]
      return &dense_[static_cast<size_t>(id)];
    if (sparse_.empty()) return nullptr;
    const auto it = sparse_.find(id);
    return it == sparse_.end() ? nullptr : &it.value();
  }
  // find(id) will be called soon.
  void prefetch(uint64_t id) const {
    __builtin_prefetch(dense_.data() + std::min<uint64_t>(id, dense_.size()));
    asm volatile("");  // gcc removes calls of a function that does nothing but prefetch
  }
  void clear() {
    dense_.clear();
    sparse_.clear();
    asked_ = 0;
  }

 private:
  void grow(size_t size) {
    dense_.resize(std::max(size, dense_.size() + dense_.size() / 2));
    for (auto it = sparse_.begin(); it != sparse_.end();) {
      if (it->first < dense_.size()) {
        dense_[static_cast<size_t>(it->first)] = std::move(it.value());
        it = sparse_.erase(it);
      } else {
        ++it;
      }
    }
  }

  std::vector<T> dense_;
  tsl::robin_map<uint64_t, T> sparse_;
  uint64_t asked_ = 0;
};

}  // namespace traceaf::reader
