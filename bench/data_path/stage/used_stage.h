#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "stage/stage.h"

namespace vpfs {

using Watch = std::chrono::steady_clock;

// How many virtual PFSes there are.
inline constexpr std::size_t kCounts[] = {100, 1000, 10'000};

[[nodiscard]] inline double quantile(std::vector<double>& values, double q) {
  const auto at = static_cast<std::size_t>(q * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(at));
  return values[at];
}

[[nodiscard]] inline double nanoseconds(Watch::duration time) {
  return std::chrono::duration<double, std::nano>(time).count();
}

// A stage whose virtual PFSes have each served a read of 4 KiB.
class UsedStage {
 public:
  explicit UsedStage(std::size_t count) : stage_(config_of(count), now_) { use(count); }

  void use(std::size_t count) {
    std::vector<stage::Held*> let_go;
    for (std::size_t i = 0; i < count; ++i) {
      const stage::VirtualPfsId id =
          stage_.find({.virtual_pfs = "job-" + std::to_string(i), .declared_name = kTemplate}, now_)
              .id;
      stage::Held io;
      io.app = id.app;
      io.generation = id.generation;
      io.size = {4 * kKiB};
      io.cost = io.size.count;
      io.arrival = now_;
      stage_.arrive(io, now_);
      (void)stage_.release(now_, let_go);
      stage::Stage::took_over(io);
      now_ += std::chrono::microseconds(50);
      stage_.end(io, {.moved = io.size}, now_);
      let_go.clear();
    }
  }

  // Calls work(stage) under the lock, and returns how long the lock was held.
  template <typename Work>
  Watch::duration locked(Work&& work) {
    const std::lock_guard lock(mutex_);
    const Watch::time_point begin = Watch::now();
    work(stage_);
    return Watch::now() - begin;
  }
  [[nodiscard]] TimePoint now() const { return now_; }
  void pass(Duration time) { now_ += time; }

 private:
  static constexpr const char* kTemplate = "job-{jobid}";

  static stage::Config config_of(std::size_t count) {
    stage::Config config;
    config.virtual_pfs = {{.name = kTemplate, .share = {}}};
    config.most_virtual_pfs = count;
    return config;
  }

  TimePoint now_ = TimePoint(std::chrono::seconds(1));
  std::mutex mutex_;
  stage::Stage stage_;
};

}  // namespace vpfs
