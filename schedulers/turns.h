#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace vpfs {

// The turns of users that wait for the same tokens of a flow, as RateLimits explains them. A user
// is a number below 64.
class Turns {
 public:
  // When the limits of the share, and those of the coordinator, allow a head. At `passes` it passes
  // the latter.
  struct Ready {
    TimePoint share = TimePoint::min();
    TimePoint allocated = TimePoint::min();
    TimePoint passes = TimePoint::min();
  };

  // When the user may have the tokens: later than `now` where it gives way to another one. Called
  // by a user that has room for the request.
  [[nodiscard]] TimePoint allowed_at(std::uint8_t user, const Ready& ready, TimePoint now);
  void take(std::uint8_t user);
  // The request with which the user was refused has gone, and took nothing.
  void give_up(std::uint8_t user) {
    refused_ &= ~bit(user);
    if ((refused_ & ~served_) == 0) claimed_ = claimed_allocated_ = TimePoint::min();
  }
  void leave(std::uint8_t user) {
    served_ &= ~bit(user);
    refused_ &= ~bit(user);
    polite_ &= ~bit(user);
  }

  // Limits of the share have changed: refusals and their times belong to those before.
  void begin_anew() {
    served_ = refused_ = polite_ = 0;
    claimed_ = TimePoint::min();
  }
  // The coordinator's have. Users keep their turns, or the first one to be asked would have all of
  // them when limits change often.
  void forget_times() {
    claimed_allocated_ = TimePoint::min();
    polite_ = 0;
  }

 private:
  static constexpr Duration kLookAgain = std::chrono::milliseconds(100);

  [[nodiscard]] static std::uint64_t bit(std::uint8_t user) { return std::uint64_t{1} << user; }

  // Sets of users.
  std::uint64_t served_ = 0;   // had their turn in this round
  std::uint64_t refused_ = 0;  // found no tokens since
  std::uint64_t polite_ = 0;   // gave way after `claimed_`, the last one at `polite_at_`
  TimePoint polite_at_ = {};
  // When the refused ones have their tokens of the share, and those of the coordinator's limits.
  TimePoint claimed_ = TimePoint::min();
  TimePoint claimed_allocated_ = TimePoint::min();
};

inline TimePoint Turns::allowed_at(std::uint8_t user, const Ready& ready, TimePoint now) {
  const TimePoint at = std::max(ready.share, ready.allocated);
  const std::uint64_t own = bit(user);
  const bool had_its_turn = (served_ & own) != 0;
  if (at > now) {
    refused_ |= own;
    if (had_its_turn) return at;
    claimed_ = std::max(claimed_, ready.share);
    claimed_allocated_ = std::max(claimed_allocated_, ready.allocated);
    return at;
  }
  const bool others_wait = (refused_ & ~served_ & ~own) != 0;
  if (!had_its_turn || !others_wait) return at;
  const TimePoint claimed = std::max(claimed_, std::min(claimed_allocated_, ready.passes));
  // Nothing tells when the other one gives up.
  if (claimed > now) return std::min(claimed, now + kLookAgain);
  const bool gave_way = (polite_ & own) != 0 && polite_at_ < now;
  if (gave_way) return at;
  polite_ |= own;
  polite_at_ = now;
  return now + Duration(1);
}

inline void Turns::take(std::uint8_t user) {
  // A user that goes again found no other that wanted the tokens: a new round begins.
  if ((served_ & bit(user)) != 0) {
    served_ = refused_ = 0;
    claimed_ = TimePoint::min();
  }
  served_ |= bit(user);
  refused_ &= ~bit(user);
  polite_ = 0;
}

}  // namespace vpfs
