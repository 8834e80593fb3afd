#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/clock.h"

namespace vpfs::control {

// Lets a thread wait until its patience ends, or until another thread ends all waiting, for good.
class Pause {
 public:
  void wait(Duration patience) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::min<Duration>(patience, kLongest), [this] { return ended_; });
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

 private:
  static constexpr Duration kLongest = std::chrono::hours(24);  // the clock can be added to it

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
};

}  // namespace vpfs::control
