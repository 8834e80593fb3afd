#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace vpfs::allocation {

// Events in the order of their times, and chance.
class VirtualTime {
 public:
  using Action = std::function<void()>;

  explicit VirtualTime(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] TimePoint now() const { return now_; }
  [[nodiscard]] std::mt19937_64& random() { return random_; }

  void at(TimePoint time, Action action) {
    events_.push(
        {.at = std::max(time, now_), .number = ++events_made_, .action = std::move(action)});
  }
  // Until the end, or until `goes_on` is false.
  void run(TimePoint end, const bool& goes_on) {
    while (goes_on && !events_.empty()) {
      const Event next = events_.top();
      if (next.at > end) break;
      events_.pop();
      now_ = next.at;
      next.action();
    }
  }

  [[nodiscard]] Duration random_time(Duration least, Duration most) {
    return least + Duration(random_() % static_cast<std::uint64_t>((most - least).count() + 1));
  }
  [[nodiscard]] bool happens(std::uint64_t of_10000) { return random_() % 10000 < of_10000; }

 private:
  struct Event {
    TimePoint at;
    std::uint64_t number;  // events of one time come in the order in which they were made
    Action action;
    bool operator>(const Event& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };

  TimePoint now_ = {};
  std::mt19937_64 random_;
  std::uint64_t events_made_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace vpfs::allocation
