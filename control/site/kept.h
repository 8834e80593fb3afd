#pragma once

#include <optional>

#include "base/clock.h"

namespace vpfs::coordinator {

// What takes long to make: it is kept for three times as long as that took. However often it is
// asked for, a quarter of the thread's time at most goes into it.
template <typename T>
class Kept {
 public:
  template <typename Make>
  const T& get(const Clock& clock, Make make) {
    const TimePoint begun = clock.now();
    if (value_ && begun < until_) return *value_;
    value_ = make();
    const TimePoint made = clock.now();
    until_ = made + 3 * (made - begun);
    return *value_;
  }
  // What it is made from has changed, and the next one has to show it.
  void forget() { value_.reset(); }

 private:
  std::optional<T> value_;
  TimePoint until_ = {};
};

}  // namespace vpfs::coordinator
