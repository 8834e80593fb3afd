#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "stage/text_hash.h"

namespace vpfs::stage {

// What has been found out about identities, by keys as Classifier::append_key() makes them. Those
// that have not been used for long are forgotten: it keeps two generations, and when the recent one
// is full the older one is dropped.
//
// A look-up compares whole keys, and takes the same time whatever keys others choose, if they
// cannot know the seed. It only allocates while it grows to hold more than ever before.
template <typename Value>
class KnownIdentities {
 public:
  // Of each of the two generations; the memory of a full one is about 2 x entries x (24 bytes and a
  // Value) + bytes of keys.
  struct Limits {
    std::size_t entries = std::size_t{16} * 1024;
    std::size_t bytes = std::size_t{1024} * 1024;
  };

  explicit KnownIdentities(std::uint64_t seed, const Limits& limits = {})
      : hash_(seed), limits_(limits) {}

  // Null when it is not known; else it counts as used, and is there until the next call.
  [[nodiscard]] const Value* find(std::string_view key) {
    const std::uint64_t hash = hash_(key);
    if (const Slot* const slot = recent_.find(hash, key)) return &slot->value;
    const Slot* const slot = older_.find(hash, key);
    return slot == nullptr ? nullptr : &add(hash, key, slot->value);
  }

  // REQUIRES: the key is not known.
  void insert(std::string_view key, const Value& value) {
    if (key.size() <= limits_.bytes) (void)add(hash_(key), key, value);
  }

  // Takes the same time however many are known, and keeps the memory for others.
  void forget_all() {
    recent_.clear();
    older_.clear();
  }

  // Those that may be found.
  [[nodiscard]] std::size_t size() const { return recent_.size() + older_.size(); }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t key_at = 0;  // in keys_
    std::uint32_t key_size = 0;
    std::uint32_t stamp = 0;  // of when it was filled
    Value value = {};
  };

  // Open addressing with linear probing. A slot of another stamp is free.
  class Generation {
   public:
    [[nodiscard]] const Slot* find(std::uint64_t hash, std::string_view key) const {
      if (used_ == 0) return nullptr;
      for (std::size_t i = hash & mask();; i = (i + 1) & mask()) {
        const Slot& slot = slots_[i];
        if (slot.stamp != stamp_) return nullptr;
        if (slot.hash == hash && key_of(slot) == key) return &slot;
      }
    }
    const Value& insert(std::uint64_t hash, std::string_view key, const Value& value) {
      if (slots_.size() < 2 * (used_ + 1)) grow();
      const auto at = static_cast<std::uint32_t>(keys_.size());
      keys_.insert(keys_.end(), key.begin(), key.end());
      ++used_;
      Slot& slot = free_slot(hash);
      slot = {.hash = hash,
              .key_at = at,
              .key_size = static_cast<std::uint32_t>(key.size()),
              .stamp = stamp_,
              .value = value};
      return slot.value;
    }
    void clear() {
      used_ = 0;
      keys_.clear();
      if (++stamp_ != 0) return;
      for (Slot& slot : slots_) slot.stamp = 0;  // once in 2^32 times
      stamp_ = 1;
    }
    [[nodiscard]] std::size_t size() const { return used_; }
    [[nodiscard]] std::size_t bytes() const { return keys_.size(); }

   private:
    [[nodiscard]] std::size_t mask() const { return slots_.size() - 1; }
    [[nodiscard]] std::string_view key_of(const Slot& slot) const {
      return std::string_view(keys_.data(), keys_.size()).substr(slot.key_at, slot.key_size);
    }
    [[nodiscard]] Slot& free_slot(std::uint64_t hash) {
      std::size_t i = hash & mask();
      while (slots_[i].stamp == stamp_) i = (i + 1) & mask();
      return slots_[i];
    }
    void grow() {
      const std::vector<Slot> old = std::exchange(
          slots_, std::vector<Slot>(slots_.empty() ? std::size_t{16} : 2 * slots_.size()));
      for (const Slot& slot : old) {
        if (slot.stamp == stamp_) free_slot(slot.hash) = slot;
      }
    }

    std::vector<Slot> slots_;
    std::vector<char> keys_;
    std::size_t used_ = 0;
    std::uint32_t stamp_ = 1;
  };

  // The value may be of the older generation, which may be dropped here.
  const Value& add(std::uint64_t hash, std::string_view key, Value value) {
    if (recent_.size() >= limits_.entries || recent_.bytes() + key.size() > limits_.bytes) {
      std::swap(recent_, older_);
      recent_.clear();
    }
    return recent_.insert(hash, key, value);
  }

  TextHash hash_;
  Limits limits_;
  Generation recent_;
  Generation older_;
};

}  // namespace vpfs::stage
