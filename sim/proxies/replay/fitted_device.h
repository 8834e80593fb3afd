#pragma once

#include "base/device_model.h"
#include "sim/proxies/replay/recorded_io.h"

namespace vpfs::sim {

// A device that would have been as busy as the data server was, by least squares: in each window
// the time with requests at the server is so much for each request and so much for each byte. How
// many requests it has served at once shows in how many ended while more or fewer were there.
// Nothing is known of what a server could do beyond what it did. REQUIRES: there are requests.
[[nodiscard]] DeviceSettings fitted_device(const RecordedLoad& load);

}  // namespace vpfs::sim
