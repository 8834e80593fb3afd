#include "proxy/busy_poll.h"

#include <algorithm>

namespace vpfs::proxy {

Duration BusyPoll::next(TimePoint now) {
  if (longest_ <= Duration::zero() || now < rests_until_) return Duration::zero();
  if (in_vain_ < kInVain) return longest_;
  if (++slept_ < kTries) return Duration::zero();
  slept_ = 0;
  return longest_;
}

void BusyPoll::missed(Duration longest_gap, TimePoint now) {
  if (in_vain_ < kInVain) ++in_vain_;
  if (longest_gap < kPreempted) {
    rest_ = kRest;
    return;
  }
  rests_until_ = now + rest_;
  rest_ = std::min(2 * rest_, kLongestRest);
}

}  // namespace vpfs::proxy
