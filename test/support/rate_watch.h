#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace vpfs {

// Compares the service of one flow with a rate, exactly and over every interval at once. Service
// less rate x time is one number that goes up with each request and down with time. The excess or
// deficit of an interval is the difference of two of its values.
class RateWatch {
 public:
  __extension__ using Wide = __int128;

  explicit RateWatch(std::uint64_t rate, TimePoint now = {}) : rate_(rate), since_(now) {}

  void served(std::uint64_t amount, TimePoint now) {
    look(now);
    value_ += Wide{amount} * kNanoseconds;
    most_over_ = std::max(most_over_, value_ - least_);
    most_ = std::max(most_, value_);
  }
  void change_rate(std::uint64_t rate, TimePoint now) {
    look(now);
    rate_ = rate;
  }
  // Intervals that got less are looked for between these two calls.
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
    return most_over_ <= Wide{amount} * kNanoseconds;
  }
  // The smallest amount for which no interval of a backlog got less than rate x time - amount, and
  // for which no interval got more than rate x time + amount.
  [[nodiscard]] double most_missing() const { return units(most_under_); }
  [[nodiscard]] double most_over() const { return units(most_over_); }

 private:
  static constexpr std::int64_t kNanoseconds = 1'000'000'000;

  static double units(Wide value) { return static_cast<double>(value) / kNanoseconds; }
  void look(TimePoint now) {
    value_ -= Wide{rate_} * (now - since_).count();
    since_ = now;
    least_ = std::min(least_, value_);
    if (backlogged_) most_under_ = std::max(most_under_, most_ - value_);
  }

  std::uint64_t rate_;
  TimePoint since_;
  bool backlogged_ = false;
  Wide value_ = 0;  // service less what the rate makes of the time, in parts of 10^9
  Wide least_ = 0;  // of value_ before requests
  Wide most_ = 0;   // of value_ in this backlog
  Wide most_over_ = 0;
  Wide most_under_ = 0;
};

}  // namespace vpfs
