#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace vpfs {

// All bits depend on the key and the seed: one that chooses keys cannot make them collide without
// knowing the seed.
[[nodiscard]] constexpr std::uint64_t seeded_hash(std::uint64_t key, std::uint64_t seed) {
  const std::uint64_t hash = (key ^ seed) * 0x9e3779b97f4a7c15U;
  return (hash ^ (hash >> 32U)) * 0xd6e8feb86659fd93U;
}

// A map from numbers to small values with open addressing and linear probing. It allocates only
// when it holds more entries than ever since it was empty. A large table that becomes empty gives
// its memory back. A value that is erased is destroyed when its place is used again: what it owns
// is to be freed before.
//
// Every operation takes O(1) steps on average, whatever the keys: a seeded hash places them. A peer
// that chooses the keys cannot make them collide without knowing the seed.
template <typename Value>
class FlatTable {
 public:
  explicit FlatTable(std::uint64_t seed = 0) : seed_(seed) {}

  [[nodiscard]] const Value* find(std::uint64_t key) const {
    if (size_ == 0) return nullptr;
    for (std::size_t i = home(key);; i = after(i)) {
      if (!cells_[i].used) return nullptr;
      if (cells_[i].key == key) return &cells_[i].value;
    }
  }
  [[nodiscard]] Value* find(std::uint64_t key) {
    return const_cast<Value*>(std::as_const(*this).find(key));
  }

  // REQUIRES: the key is not there. References stay valid until the next insert or erase.
  Value& insert(std::uint64_t key, Value value) {
    if (cells_.size() < 2 * (size_ + 1)) grow();
    std::size_t i = home(key);
    while (cells_[i].used) i = after(i);
    cells_[i] = {.key = key, .value = std::move(value), .used = true};
    ++size_;
    return cells_[i].value;
  }

  void erase(std::uint64_t key) {
    if (size_ == 0) return;
    std::size_t hole = home(key);
    while (cells_[hole].used && cells_[hole].key != key) hole = after(hole);
    if (!cells_[hole].used) return;
    // Close the gap: move back every later entry of the run that must not come after a hole.
    for (std::size_t i = after(hole); cells_[i].used; i = after(i)) {
      const std::size_t distance_home = (i - home(cells_[i].key)) & mask();
      const std::size_t distance_hole = (i - hole) & mask();
      if (distance_home >= distance_hole) {
        cells_[hole] = std::move(cells_[i]);
        hole = i;
      }
    }
    cells_[hole].used = false;
    if (--size_ == 0 && cells_.size() > kMostIdleCells) (void)std::exchange(cells_, {});
  }

  // Calls visit(key, value&) for every entry, in no particular order; the table must not change
  // meanwhile.
  template <typename Visitor>
  void for_each(Visitor&& visit) {
    for (Cell& cell : cells_) {
      if (cell.used) visit(cell.key, cell.value);
    }
  }

  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  // Enough for two entries: most connections carry no more at a time.
  static constexpr std::size_t kFirstCells = 4;
  static constexpr std::size_t kMostIdleCells = 256;

  struct Cell {
    std::uint64_t key = 0;
    Value value = {};
    bool used = false;
  };

  [[nodiscard]] std::size_t mask() const { return cells_.size() - 1; }
  [[nodiscard]] std::size_t after(std::size_t i) const { return (i + 1) & mask(); }
  [[nodiscard]] std::size_t home(std::uint64_t key) const {
    return static_cast<std::size_t>(seeded_hash(key, seed_) >> 32U) & mask();
  }

  void grow() {
    std::vector<Cell> old = std::move(cells_);
    cells_ = std::vector<Cell>(old.empty() ? kFirstCells : 2 * old.size());
    size_ = 0;
    for (Cell& cell : old) {
      if (cell.used) insert(cell.key, std::move(cell.value));
    }
  }

  std::uint64_t seed_;
  std::vector<Cell> cells_;
  std::size_t size_ = 0;
};

}  // namespace vpfs
