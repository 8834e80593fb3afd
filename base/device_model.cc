#include "base/device_model.h"

#include <algorithm>

namespace vpfs {

DeviceModel::DeviceModel(const DeviceSettings& settings)
    : settings_(settings),
      pipe_(std::min(settings.bandwidth.count, Pipe::kMostPerSecond)),
      free_at_(settings.parallelism, TimePoint::min()) {}

TimePoint DeviceModel::finish(TimePoint now, Bytes size, bool fixed_time) {
  TimePoint ready = now;
  auto next = free_at_.end();
  if (fixed_time) {
    next = std::ranges::min_element(free_at_);
    ready = std::max(now, *next) + settings_.per_request;
  }
  const TimePoint done = pipe_.pass(size.count, ready);
  if (next != free_at_.end()) *next = done;
  return done;
}

}  // namespace vpfs
