#include "load/schedule.h"

#include <algorithm>

namespace vpfs::load {

Schedule::Schedule(const ApplicationSettings& application, Duration run_length)
    : start_(application.start),
      stop_(std::min(application.stop.value_or(run_length), run_length)),
      burst_(application.burst) {}

std::optional<Duration> Schedule::next(Duration now) const {
  Duration when = std::max(now, start_);
  if (burst_) {
    const Duration into = (when - start_) % burst_->interval;
    if (into >= burst_->length) when += burst_->interval - into;
  }
  if (when >= stop_) return std::nullopt;
  return when;
}

}  // namespace vpfs::load
