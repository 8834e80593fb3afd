#pragma once

#include <vector>

#include "base/clock.h"
#include "base/pipe.h"
#include "dataserver/orangefs/server_config.h"

namespace vpfs::dataserver {

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
  std::vector<TimePoint> slots_;  // when each is free
};

}  // namespace vpfs::dataserver
