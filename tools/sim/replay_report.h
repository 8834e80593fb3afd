#pragma once

#include <string>
#include <vector>

#include "base/device_model.h"
#include "sim/proxies/replay/replay.h"

namespace vpfs::sim_tool {

struct FinishedReplay {
  std::string recording;  // files
  std::string config;
  Duration length = {};
  DeviceSettings device;
  std::vector<std::string> not_recorded;
  std::vector<sim::ReplayedShare> before;
  std::vector<sim::ReplayedShare> after;
};

// A row for each virtual PFS: what it got, and what it would have got.
[[nodiscard]] std::string to_table(const FinishedReplay& replay);
[[nodiscard]] std::string to_json(const FinishedReplay& replay);

}  // namespace vpfs::sim_tool
