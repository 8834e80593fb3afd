#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "schedulers/request.h"

namespace vpfs::stage {

// A row for each AppId, side by side in blocks. Growing neither moves nor copies rows, so no reader
// waits for it.
template <typename Row>
class DenseRows {
 public:
  static constexpr std::size_t kBlock = 128;  // rows

  [[nodiscard]] std::size_t size() const { return size_; }
  // Adds a row at the end.
  Row& add() {
    if (size_ == blocks_.size() * kBlock) blocks_.push_back(std::make_unique<Block>());
    return at(size_++);
  }

  // REQUIRES (all): the row is there.
  [[nodiscard]] Row& operator[](AppId app) { return at(std::to_underlying(app)); }
  [[nodiscard]] const Row& operator[](AppId app) const {
    return (*blocks_[std::to_underlying(app) / kBlock])[std::to_underlying(app) % kBlock];
  }

 private:
  using Block = std::array<Row, kBlock>;

  [[nodiscard]] Row& at(std::size_t index) { return (*blocks_[index / kBlock])[index % kBlock]; }

  std::vector<std::unique_ptr<Block>> blocks_;
  std::size_t size_ = 0;
};

}  // namespace vpfs::stage
