#include "stage/recorder/ring.h"

#include <algorithm>

namespace vpfs::stage {

RecordedRing::RecordedRing(std::size_t capacity)
    : capacity_(capacity), rows_(std::make_unique<Row[]>(capacity)) {}

std::uint64_t RecordedRing::read(std::uint64_t from, std::size_t count,
                                 std::vector<Recorded::Words>& to) const {
  const std::uint64_t all = written();
  // The request of the next number may be in the making, in the place of the oldest one.
  const auto oldest_whole = [this](std::uint64_t next) {
    return next >= capacity_ ? next - capacity_ + 1 : 0;
  };
  std::uint64_t first = std::min(std::max(from, oldest_whole(all)), all);
  const std::uint64_t end = first + std::min<std::uint64_t>(count, all - first);
  const std::size_t before = to.size();
  for (std::uint64_t at = first; at < end; ++at) {
    const Row& row = rows_[at % capacity_];
    Recorded::Words& words = to.emplace_back();
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] = row[i].load(std::memory_order_relaxed);
    }
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  const std::uint64_t whole = std::min(oldest_whole(written_.load(std::memory_order_relaxed)), end);
  if (whole > first) {
    const auto begin = to.begin() + static_cast<std::ptrdiff_t>(before);
    to.erase(begin, begin + static_cast<std::ptrdiff_t>(whole - first));
    first = whole;
  }
  return first;
}

}  // namespace vpfs::stage
