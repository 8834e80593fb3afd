#pragma once

#include <algorithm>
#include <cstdint>

#include <sched.h>

#include "base/clock.h"

namespace vpfs::net {

// How long a thread polls for events before it sleeps, since to be woken takes longer than an event
// that comes at once. It polls while that pays: while most of the time that it polls ends with an
// event. Else it tries before one of kTries sleeps. While other threads want its processor, it does
// not poll at all. So a thread without traffic, or with a slow data server, or on a busy machine,
// uses next to no processor time for it.
class BusyPoll {
 public:
  // Zero: never.
  void set_longest(Duration longest);
  [[nodiscard]] bool is_on() const { return longest_ > Duration::zero(); }

  // Without a processor quota, unless a configuration says otherwise. Polling would use a quota up.
  static constexpr Duration kUsual = std::chrono::microseconds(100);
  // The longest that a configuration may say.
  static constexpr Duration kMost = std::chrono::milliseconds(1);

  // How long to poll before the next sleep; zero: not at all.
  [[nodiscard]] Duration next(TimePoint now);
  // Calls look() until it returns true, which it does if there was an event, for so long at most.
  // Other threads that want this processor have it between two looks. Returns what the last call
  // did. REQUIRES: `clock` goes on meanwhile.
  template <typename Look>
  bool poll(Duration longest, const Clock& clock, Look look);
  // What it has polled up to now. `longest_gap`: between two looks.
  struct Polled {
    Duration time;
    Duration longest_gap;
  };
  void found(Polled polled, TimePoint now);
  void missed(Polled polled, TimePoint now);

  // It stops when it has polled for so many times the longest time in vain, less what was not.
  static constexpr std::int64_t kInVain = 8;
  static constexpr std::uint32_t kTries = 32;
  // A gap this long means that the thread was preempted: others want its processor. Then it rests,
  // and twice as long each time that they are still there. The first rest is longer than a period
  // of a processor quota (100 ms).
  static constexpr Duration kPreempted = std::chrono::microseconds(500);
  static constexpr Duration kRest = std::chrono::milliseconds(200);
  static constexpr Duration kLongestRest = std::chrono::seconds(4);

 private:
  [[nodiscard]] Duration most() const { return kInVain * longest_; }
  [[nodiscard]] bool pays() const { return balance_ > -most(); }
  void add(Duration time, const Polled& polled, TimePoint now);

  Duration longest_ = Duration::zero();
  Duration balance_ = Duration::zero();  // time that ended with an event, less time in vain
  std::uint32_t slept_ = 0;              // times since the last try
  Duration rest_ = kRest;                // the next one
  TimePoint rests_until_ = {};
};

template <typename Look>
bool BusyPoll::poll(Duration longest, const Clock& clock, Look look) {
  const TimePoint begin = clock.now();
  Polled polled = {};
  for (TimePoint now = begin;;) {
    if (look()) {
      found(polled, now);
      return true;
    }
    if (now - begin >= longest) break;
    (void)::sched_yield();
    const TimePoint looked = clock.now();
    polled = {.time = looked - begin, .longest_gap = std::max(polled.longest_gap, looked - now)};
    now = looked;
  }
  missed(polled, begin + polled.time);
  return false;
}

}  // namespace vpfs::net
