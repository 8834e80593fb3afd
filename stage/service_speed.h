#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/wide.h"
#include "schedulers/request.h"

namespace vpfs::stage {

// How much cost a data server does in a second, and so for how long a coordinator's totals may
// hold a head there.
//
// Speed is measured in spans of a second or more; the larger of the last two counts, so that an
// idle moment does not look like a slow server.
class ServiceSpeed {
 public:
  // A head that is held lets its flow have this part of the server, at most.
  static constexpr Cost kPart = 40;
  static constexpr Duration kShortest = std::chrono::milliseconds(500);
  static constexpr Duration kLongest = std::chrono::seconds(10);

  void done(Cost cost) { done_ += cost; }
  // Called now and then, in each cycle of a coordinator, say.
  void look(TimePoint now) {
    if (!since_) {
      since_ = now;
      done_ = 0;
    }
    const Duration span = now - *since_;
    if (span < kSpan) return;
    before_ = std::exchange(last_, per_second(done_, span));
    done_ = 0;
    since_ = now;
  }
  // Cost each second; 0: not known yet.
  [[nodiscard]] Cost speed() const { return std::max(before_, last_); }

  // For how long the head of a flow may be held whose requests cost so much, so that one of them in
  // each such time is 1 / kPart of what the server does. Within kShortest and kLongest.
  [[nodiscard]] Duration longest_delay(Cost request) const {
    if (speed() == 0) return kShortest;
    const Wide exact = Wide{request} * kPart * kNanosecondsPerSecond / speed();
    return std::clamp(Duration(static_cast<std::int64_t>(std::min<Wide>(exact, kLongest.count()))),
                      kShortest, kLongest);
  }

  template <typename Archive>
  void archive(Archive& fields) {
    fields("last", last_);
    fields("before", before_);
  }

 private:
  static constexpr Duration kSpan = std::chrono::seconds(1);

  static Cost per_second(Cost cost, Duration span) {
    return static_cast<Cost>(Wide{cost} * kNanosecondsPerSecond /
                             static_cast<std::uint64_t>(span.count()));
  }

  Cost done_ = 0;  // since `since_`
  std::optional<TimePoint> since_;
  Cost last_ = 0;    // in the last span, each second
  Cost before_ = 0;  // in the one before
};

}  // namespace vpfs::stage
