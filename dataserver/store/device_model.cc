#include "dataserver/store/device_model.h"

#include <algorithm>

namespace vpfs::dataserver {

DeviceModel::DeviceModel(const DeviceSettings& settings)
    : settings_(settings),
      pipe_(std::min(settings.bandwidth.count, Pipe::kMostPerSecond)),
      slots_(settings.parallelism, TimePoint::min()) {}

TimePoint DeviceModel::finish(TimePoint now, Bytes size, bool fixed_time) {
  TimePoint ready = now;
  auto slot = slots_.end();
  if (fixed_time) {
    slot = std::ranges::min_element(slots_);
    ready = std::max(now, *slot) + settings_.per_request;
  }
  const TimePoint done = pipe_.pass(size.count, ready);
  if (slot != slots_.end()) *slot = done;
  return done;
}

}  // namespace vpfs::dataserver
