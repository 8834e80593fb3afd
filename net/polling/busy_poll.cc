#include "net/polling/busy_poll.h"

#include <algorithm>

namespace vpfs::net {

void BusyPoll::set_longest(Duration longest) {
  if (longest != longest_) *this = {};
  longest_ = longest;
}

Duration BusyPoll::next(TimePoint now) {
  if (!is_on() || now < rests_until_) return Duration::zero();
  if (pays()) return longest_;
  if (++slept_ < kTries) return Duration::zero();
  slept_ = 0;
  return longest_;
}

void BusyPoll::found(Polled polled, TimePoint now) {
  add(polled.time, polled, now);
}

void BusyPoll::missed(Polled polled, TimePoint now) {
  add(-polled.time, polled, now);
}

void BusyPoll::add(Duration time, const Polled& polled, TimePoint now) {
  // What is above the longest time was a gap, in which others ran.
  balance_ = std::clamp(balance_ + std::clamp(time, -longest_, longest_), -most(), most());
  if (polled.longest_gap >= kPreempted) {
    rests_until_ = now + rest_;
    rest_ = std::min(2 * rest_, kLongestRest);
  } else if (polled.time > Duration::zero()) {
    rest_ = kRest;
  }
}

}  // namespace vpfs::net
