#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace vpfs::proxy {

// A clock that the test advances and that counts how often it is read.
class CountingClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override {
    ++reads_;
    return TimePoint{Duration(now_.load())};
  }
  void advance(Duration by) { now_ += by.count(); }
  [[nodiscard]] std::uint64_t reads() const { return reads_; }

 private:
  std::atomic<std::int64_t> now_ = Duration(std::chrono::hours(1)).count();
  mutable std::atomic<std::uint64_t> reads_ = 0;
};

}  // namespace vpfs::proxy
