#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <unordered_map>
#include <utility>

#include "base/flat_table.h"

namespace vpfs::proxy {

// A map with bounded memory: it forgets entries that have not been used for long. Any thread may
// call it. A peer that chooses the keys cannot make them collide without knowing the seed.
template <typename Value>
class RecentMap {
 public:
  RecentMap()
      : RecentMap((std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}()) {}
  explicit RecentMap(std::uint64_t seed) : hash_{seed} {
    for (Part& part : parts_) part.recent = part.older = Values(0, hash_);
  }

  // Looking a value up counts as using it.
  [[nodiscard]] std::optional<Value> find(std::uint64_t key) {
    Part& part = part_of(key);
    const std::lock_guard lock(part.mutex);
    const Value* const value = use(part, key);
    return value == nullptr ? std::nullopt : std::optional(*value);
  }
  // Calls change(value&), with a new value if the key is unknown.
  template <typename Change>
  void change(std::uint64_t key, Change change) {
    Part& part = part_of(key);
    const std::lock_guard lock(part.mutex);
    Value* value = use(part, key);
    if (value == nullptr) {
      make_room(part);
      value = &part.recent[key];
    }
    change(*value);
  }
  // Calls visit(key, value) for every entry, those that were used longest ago first.
  template <typename Visitor>
  void for_each(Visitor visit) {
    for (Part& part : parts_) {
      const std::lock_guard lock(part.mutex);
      for (const auto& [key, value] : part.older) visit(key, value);
      for (const auto& [key, value] : part.recent) visit(key, value);
    }
  }
  void erase(std::uint64_t key) {
    Part& part = part_of(key);
    const std::lock_guard lock(part.mutex);
    part.recent.erase(key);
    part.older.erase(key);
  }

 private:
  static constexpr std::size_t kParts = 16;
  // Entries per part. When the recent generation is full, the older one is dropped.
  static constexpr std::size_t kMostRecent = 8192;

  struct Hash {
    std::uint64_t seed = 0;
    std::size_t operator()(std::uint64_t key) const { return seeded_hash(key, seed); }
  };
  using Values = std::unordered_map<std::uint64_t, Value, Hash>;
  struct Part {
    std::mutex mutex;
    Values recent;
    Values older;
  };

  [[nodiscard]] Part& part_of(std::uint64_t key) { return parts_[(hash_(key) >> 32U) % kParts]; }
  void make_room(Part& part) {
    if (part.recent.size() < kMostRecent) return;
    part.older = std::exchange(part.recent, Values(0, hash_));
  }
  // Moves a used entry to the recent generation.
  [[nodiscard]] Value* use(Part& part, std::uint64_t key) {
    if (const auto found = part.recent.find(key); found != part.recent.end()) {
      return &found->second;
    }
    const auto found = part.older.find(key);
    if (found == part.older.end()) return nullptr;
    auto node = part.older.extract(found);
    make_room(part);
    return &part.recent.insert(std::move(node)).position->second;
  }

  const Hash hash_;
  std::array<Part, kParts> parts_;
};

}  // namespace vpfs::proxy
