#include "tools/load/schedule.h"

#include <algorithm>

namespace vpfs::load {

Schedule::Schedule(const ApplicationSettings& application, const RunEnd& end)
    : start_(application.start),
      stop_(application.stop.value_or(Duration::max())),
      end_(end),
      burst_(application.burst) {}

std::optional<Duration> Schedule::next(Duration now) const {
  Duration when = std::max(now, start_);
  if (burst_) {
    const Duration into = (when - start_) % burst_->interval;
    if (into >= burst_->length) when += burst_->interval - into;
  }
  if (when >= std::min(stop_, end_.get())) return std::nullopt;
  return when;
}

}  // namespace vpfs::load
