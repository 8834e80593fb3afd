#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

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

// Where the shares of a replay and of its recording differ most, in percent of all bytes.
struct ShareGap {
  std::string virtual_pfs;
  double recorded = 0;
  double replayed = 0;
};
[[nodiscard]] ShareGap largest_gap(const FinishedReplay& replay);

// A row for each virtual PFS: what it got, and what it would have got.
[[nodiscard]] std::string to_table(const FinishedReplay& replay);
[[nodiscard]] std::string to_json(const FinishedReplay& replay);
[[nodiscard]] nlohmann::ordered_json json_of(const FinishedReplay& replay);

}  // namespace vpfs::sim_tool
