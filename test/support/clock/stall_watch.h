#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace vpfs::test {

// For how long this machine was late to run a thread that was due, while this object lived. A test
// of times by the wall clock allows that much on top: other programs may keep processors busy.
class StallWatch {
 public:
  [[nodiscard]] std::chrono::milliseconds longest() const {
    return std::chrono::milliseconds(longest_.load());
  }

 private:
  void watch(const std::stop_token& stop) {
    constexpr std::chrono::milliseconds kNap{2};
    while (!stop.stop_requested()) {
      const auto begin = std::chrono::steady_clock::now();
      std::this_thread::sleep_for(kNap);
      const auto late = std::chrono::steady_clock::now() - begin - kNap;
      longest_ = std::max(longest_.load(),
                          std::chrono::duration_cast<std::chrono::milliseconds>(late).count());
    }
  }

  std::atomic<std::chrono::milliseconds::rep> longest_ = 0;
  std::jthread thread_{[this](const std::stop_token& stop) { watch(stop); }};
};

}  // namespace vpfs::test
