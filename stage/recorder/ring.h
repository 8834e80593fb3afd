#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "stage/recorder/recorded.h"

namespace vpfs::stage {

// The latest requests of a recording. One thread at a time writes, and never waits; any thread may
// read meanwhile. All memory is taken, and touched, when it is made.
class RecordedRing {
 public:
  // REQUIRES: capacity > 0. Throws std::bad_alloc.
  explicit RecordedRing(std::size_t capacity);

  void write(const Recorded& request) {
    const std::uint64_t at = written_.load(std::memory_order_relaxed);
    // A reader that sees a word of this request sees that those before it are written.
    std::atomic_thread_fence(std::memory_order_release);
    Row& row = rows_[place_];
    const Recorded::Words words = request.words();
    for (std::size_t i = 0; i < words.size(); ++i) {
      row[i].store(words[i], std::memory_order_relaxed);
    }
    if (++place_ == capacity_) place_ = 0;
    // The row is not in a cache: it was written a whole round ago.
    __builtin_prefetch(&rows_[place_], 1);
    written_.store(at + 1, std::memory_order_release);
  }

  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  // Since the beginning. The latest capacity() of them are kept, without the oldest of these while
  // it is overwritten.
  [[nodiscard]] std::uint64_t written() const { return written_.load(std::memory_order_acquire); }
  // Appends the words of those that are kept of `count` requests from number `from` on; returns the
  // number of the first. A request that is overwritten meanwhile is not among them.
  std::uint64_t read(std::uint64_t from, std::size_t count, std::vector<Recorded::Words>& to) const;

 private:
  struct alignas(64) Row : std::array<std::atomic<std::uint64_t>, 8> {};

  std::size_t capacity_;
  std::unique_ptr<Row[]> rows_;
  std::size_t place_ = 0;
  std::atomic<std::uint64_t> written_ = 0;
};

}  // namespace vpfs::stage
