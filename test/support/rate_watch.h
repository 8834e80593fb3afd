#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "base/wide.h"

namespace vpfs {

// Compares the service of a flow with a rate, exactly and over every interval. It tracks one
// number, service - rate x time, which rises with each request and falls with time. The difference
// of two of its values is the excess or the deficit of the interval between.
class RateWatch {
 public:
  explicit RateWatch(std::uint64_t rate, TimePoint now = {}) : rate_(rate), since_(now) {}

  void served(std::uint64_t amount, TimePoint now) {
    look(now);
    value_ += SignedWide{amount} * kNanoseconds;
    most_over_ = std::max(most_over_, value_ - least_);
    most_ = std::max(most_, value_);
  }
  void change_rate(std::uint64_t rate, TimePoint now) {
    look(now);
    rate_ = rate;
  }
  // Deficits count only between these two calls.
  void begin_backlog(TimePoint now) {
    look(now);
    backlogged_ = true;
    most_ = value_;
  }
  void end_backlog(TimePoint now) {
    look(now);
    backlogged_ = false;
  }

  // Whether no interval [t1, t2] got more than `amount` + rate x (t2 - t1).
  [[nodiscard]] bool never_over(std::uint64_t amount) const {
    return most_over_ <= SignedWide{amount} * kNanoseconds;
  }
  // The smallest amount for which no interval of a backlog got less than rate x time - amount, and
  // for which no interval got more than rate x time + amount.
  [[nodiscard]] double most_missing() const { return units(most_under_); }
  [[nodiscard]] double most_over() const { return units(most_over_); }

 private:
  static constexpr std::int64_t kNanoseconds = 1'000'000'000;

  static double units(SignedWide value) { return static_cast<double>(value) / kNanoseconds; }
  void look(TimePoint now) {
    value_ -= SignedWide{rate_} * (now - since_).count();
    since_ = now;
    least_ = std::min(least_, value_);
    if (backlogged_) most_under_ = std::max(most_under_, most_ - value_);
  }

  std::uint64_t rate_;
  TimePoint since_;
  bool backlogged_ = false;
  SignedWide value_ = 0;  // service - rate x time, in parts of 10^9
  SignedWide least_ = 0;  // smallest value_ so far
  SignedWide most_ = 0;   // largest value_ in this backlog
  SignedWide most_over_ = 0;
  SignedWide most_under_ = 0;
};

}  // namespace vpfs
