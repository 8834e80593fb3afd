#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/pipe.h"
#include "base/units.h"

namespace vpfs {

struct DeviceSettings {
  BytesPerSecond bandwidth;
  Duration per_request = Duration::zero();
  std::uint64_t parallelism = 1;
};

// Says when a device would have finished a request: a fixed time, of which `parallelism` requests
// may be in at once, then a transfer through one pipe of the given bandwidth. Requests are taken
// in the order of arrival. A pure function of the calls: it reads no clock.
class DeviceModel {
 public:
  explicit DeviceModel(const DeviceSettings& settings);

  // `now` never goes back. `fixed_time`: false for the later pieces of one request, which only
  // pass the pipe.
  [[nodiscard]] TimePoint finish(TimePoint now, Bytes size, bool fixed_time);

 private:
  DeviceSettings settings_;
  Pipe pipe_;
  std::vector<TimePoint> free_at_;  // one for each request that may be in at once
};

}  // namespace vpfs
