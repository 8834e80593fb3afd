#pragma once

#include <algorithm>
#include <atomic>

#include "base/clock.h"

namespace vpfs::load {

// When a run ends, counted from its beginning: as planned, or earlier if it is ended. Every thread
// may ask at any time.
class RunEnd {
 public:
  explicit RunEnd(Duration planned) : planned_(planned), end_(planned) {}

  [[nodiscard]] Duration planned() const { return planned_; }
  [[nodiscard]] Duration get() const { return end_.load(std::memory_order_relaxed); }
  // Only one thread does this.
  void end_at(Duration now) { end_.store(std::min(now, planned_), std::memory_order_relaxed); }

 private:
  Duration planned_;
  std::atomic<Duration> end_;
};

}  // namespace vpfs::load
