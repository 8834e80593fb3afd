#include "dataserver/store/device_model.h"

#include <algorithm>

namespace vpfs::dataserver {

DeviceModel::DeviceModel(const DeviceSettings& settings)
    : settings_(settings), free_at_(settings.parallelism, TimePoint::min()) {}

Duration DeviceModel::transfer_time(Bytes size) const {
  constexpr std::uint64_t kNanoseconds = 1'000'000'000;
  const std::uint64_t rate = settings_.bandwidth.count;
  // Whole seconds apart, so that the product stays within 64 bits for any request size.
  const std::uint64_t seconds = size.count / rate;
  const std::uint64_t rest = size.count % rate;
  const double fraction =
      static_cast<double>(rest) * static_cast<double>(kNanoseconds) / static_cast<double>(rate);
  return std::chrono::seconds(seconds) + Duration(static_cast<std::int64_t>(fraction));
}

TimePoint DeviceModel::finish(TimePoint now, Bytes size, bool fixed_time) {
  TimePoint ready = now;
  auto next = free_at_.end();
  if (fixed_time) {
    next = std::ranges::min_element(free_at_);
    ready = std::max(now, *next) + settings_.per_request;
  }
  const TimePoint done = std::max(ready, pipe_free_) + transfer_time(size);
  pipe_free_ = done;
  if (next != free_at_.end()) *next = done;
  return done;
}

}  // namespace vpfs::dataserver
