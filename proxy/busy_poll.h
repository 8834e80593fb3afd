#pragma once

#include <cstdint>

#include "base/clock.h"

namespace vpfs::proxy {

// How long a thread asks for events before it sleeps, since to be woken takes longer than an event
// that comes at once. It asks while that pays: after some times in vain it only tries now and then,
// and while other threads want its processor it does not ask at all. So a thread without traffic,
// or with a slow data server, or on a busy machine, uses next to no processor time for it.
class BusyPoll {
 public:
  // Zero: never.
  void set_longest(Duration longest) { longest_ = longest; }

  // How long to ask before the next sleep; zero: not at all.
  [[nodiscard]] Duration next(TimePoint now);
  // Something came while the thread asked.
  void found() { in_vain_ = 0; }
  // Nothing came. `longest_gap`: between two times that it asked, up to now.
  void missed(Duration longest_gap, TimePoint now);

  // So many times in vain, one after the other, and it only tries once in so many sleeps.
  static constexpr std::uint32_t kInVain = 8;
  static constexpr std::uint32_t kTries = 32;
  // A thread that could not ask for so long was not running: others wanted its processor. Then it
  // rests, and twice as long each time that it finds them there again.
  static constexpr Duration kPreempted = std::chrono::microseconds(500);
  static constexpr Duration kRest = std::chrono::milliseconds(50);
  static constexpr Duration kLongestRest = std::chrono::seconds(4);

 private:
  Duration longest_ = Duration::zero();
  std::uint32_t in_vain_ = 0;
  std::uint32_t slept_ = 0;  // since the last try
  Duration rest_ = kRest;    // the next one
  TimePoint rests_until_ = {};
};

}  // namespace vpfs::proxy
