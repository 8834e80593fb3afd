#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "control/admin/host_names.h"
#include "proxy/config/config.h"
#include "sim/cluster/scenario.h"
#include "sim/proxies/replay/recorded_io.h"
#include "sim/proxies/whatif/scenario.h"
#include "stage/config/policy_plugins.h"

namespace vpfs::sim_tool {

// A scenario that can be run, the name of its file, and the files that were read for it.
struct WhatIfInput {
  std::string name;
  std::vector<std::string> files;
  sim::Scenario scenario;
  proxy::Config config;
};
struct ClusterInput {
  std::string name;
  std::vector<std::string> files;
  sim::ClusterScenario scenario;
};
// A recording of vpfsctl, and the configuration of a proxy to try on it.
struct ReplayInput {
  std::string recording;  // files
  std::string config_file;
  std::vector<std::string> files;  // with those of the configuration's folder
  sim::RecordedLoad load;
  proxy::Config config;
};
using Input = std::variant<WhatIfInput, ClusterInput>;

// Reads a scenario of either kind and the files that it names, which are found from where it is.
// Mistakes of all of them are added to `problems`, each with file, line and key.
[[nodiscard]] std::optional<Input> read_input(const std::string& file,
                                              const control::HostNames& names,
                                              stage::PolicyLoader& plugins, std::string& problems);

// The same of a recording.
[[nodiscard]] std::optional<ReplayInput> read_replay(const std::string& recording,
                                                     const std::string& config,
                                                     const control::HostNames& names,
                                                     stage::PolicyLoader& plugins,
                                                     std::string& problems);

}  // namespace vpfs::sim_tool
