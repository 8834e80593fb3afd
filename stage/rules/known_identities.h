#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "stage/rules/text_hash.h"

namespace vpfs::stage {

// A cache of what is known about identities, by keys of Classifier::append_key(). It keeps two
// generations and drops the older one when the recent one is full, so identities that were not used
// for long are forgotten.
//
// A look-up compares whole keys. Peers that do not know the seed cannot slow it down by their
// choice of keys. The cache allocates only while it grows to hold more than ever before.
template <typename Value>
class KnownIdentities {
 public:
  // The size of each generation. A full one takes the bytes of its keys and, for each entry, twice
  // 24 bytes and a Value.
  struct Limits {
    std::size_t entries = std::size_t{16} * 1024;
    std::size_t bytes = std::size_t{2048} * 1024;
  };

  explicit KnownIdentities(std::uint64_t seed, const Limits& limits = {})
      : hash_(seed), limits_(limits), recent_(limits), older_(limits) {}

  // Null if the key is not known. Otherwise the value counts as used and stays until the next call.
  [[nodiscard]] const Value* find(std::string_view key) {
    const std::uint64_t hash = hash_(key);
    if (const Cell* const cell = recent_.find(hash, key)) return &cell->value;
    const Cell* const cell = older_.find(hash, key);
    return cell == nullptr ? nullptr : &add(hash, key, cell->value);
  }

  // REQUIRES: the key is not known.
  void insert(std::string_view key, const Value& value) {
    if (key.size() <= limits_.bytes) add(hash_(key), key, value);
  }

  // O(1); keeps the memory for later keys.
  void forget_all() {
    recent_.clear();
    older_.clear();
  }

  // The entries that may be found.
  [[nodiscard]] std::size_t size() const { return recent_.size() + older_.size(); }

 private:
  struct Cell {
    std::uint64_t hash;
    std::uint32_t key_at;  // in keys_
    std::uint32_t key_size;
    std::uint32_t stamp;  // when it was filled; zero: never
    Value value;
  };
  static_assert(std::is_trivially_copyable_v<Cell> && std::is_aggregate_v<Cell>);

  // Open addressing with linear probing; at least half of the cells are free. A cell with another
  // stamp is free.
  class Generation {
   public:
    explicit Generation(const Limits& limits)
        : mask_(std::bit_ceil(2 * limits.entries) - 1),
          cells_(static_cast<Cell*>(std::calloc(mask_ + 1, sizeof(Cell)))) {
      if (cells_ == nullptr) throw std::bad_alloc();
      keys_.reserve(limits.bytes);
    }

    [[nodiscard]] const Cell* find(std::uint64_t hash, std::string_view key) const {
      for (std::size_t i = hash & mask_;; i = (i + 1) & mask_) {
        const Cell& cell = cells_[i];
        if (cell.stamp != stamp_) return nullptr;
        if (cell.hash == hash && key_of(cell) == key) return &cell;
      }
    }
    const Value& insert(std::uint64_t hash, std::string_view key, const Value& value) {
      std::size_t i = hash & mask_;
      while (cells_[i].stamp == stamp_) i = (i + 1) & mask_;
      cells_[i] = {.hash = hash,
                   .key_at = static_cast<std::uint32_t>(keys_.size()),
                   .key_size = static_cast<std::uint32_t>(key.size()),
                   .stamp = stamp_,
                   .value = value};
      keys_.insert(keys_.end(), key.begin(), key.end());
      ++used_;
      return cells_[i].value;
    }
    void clear() {
      used_ = 0;
      keys_.clear();
      if (++stamp_ != 0) return;
      for (std::size_t i = 0; i <= mask_; ++i) cells_[i].stamp = 0;  // once in 2^32 times
      stamp_ = 1;
    }
    [[nodiscard]] std::size_t size() const { return used_; }
    [[nodiscard]] std::size_t bytes() const { return keys_.size(); }

   private:
    struct Free {
      void operator()(Cell* cells) const { std::free(cells); }
    };
    [[nodiscard]] std::string_view key_of(const Cell& cell) const {
      return {keys_.data() + cell.key_at, cell.key_size};
    }

    std::size_t mask_;
    std::unique_ptr<Cell[], Free> cells_;  // from calloc(), which does not touch them
    std::vector<char> keys_;
    std::size_t used_ = 0;
    std::uint32_t stamp_ = 1;
  };

  // The value may belong to the older generation, which may be dropped here.
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
