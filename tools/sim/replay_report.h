#pragma once

#include <cstdint>
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
  std::uint64_t moved = 0;             // requests, see sim::Replay::moved()
  std::vector<std::string> ambiguous;  // virtual PFSes, see sim::Replay::ambiguous()
  bool names_are_full = false;         // of the recording
  bool has_one_lane = false;           // instead of one for each target, which no recording has
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

// The same of requests, and of the bytes of all together (""), by their ratio. Virtual PFSes with
// less than a twentieth of all requests are left out.
struct WorkGap {
  std::string virtual_pfs;
  double recorded = 0;  // requests, or MiB/s of all
  double replayed = 0;
  [[nodiscard]] double ratio() const;  // at least 1
};
[[nodiscard]] WorkGap largest_work_gap(const FinishedReplay& replay);

// What all got together, recorded and replayed: a replay with the configuration of the recording
// should find the same. A line, with a warning if they differ much.
[[nodiscard]] std::string totals_text(const FinishedReplay& replay);

// A row for each virtual PFS: what it got, and what it would have got.
[[nodiscard]] std::string to_table(const FinishedReplay& replay);
[[nodiscard]] std::string to_json(const FinishedReplay& replay);
[[nodiscard]] nlohmann::ordered_json json_of(const FinishedReplay& replay);

}  // namespace vpfs::sim_tool
