#pragma once

#include <optional>

#include "base/device_model.h"
#include "net/async.h"

namespace vpfs::dataserver {

// Makes operations wait as long as the modelled device would take; without a model nothing waits.
class DeviceQueue {
 public:
  DeviceQueue(asio::io_context& context, const Clock& clock,
              const std::optional<DeviceSettings>& settings);

  [[nodiscard]] bool modelled() const { return model_.has_value(); }
  // Returns when the device has done it. `fixed_time`: see DeviceModel::finish.
  [[nodiscard]] net::Task<void> pass(Bytes size, bool fixed_time);

 private:
  asio::io_context& context_;
  const Clock& clock_;
  std::optional<DeviceModel> model_;
};

}  // namespace vpfs::dataserver
