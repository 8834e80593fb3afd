#pragma once

#include <span>
#include <string>

#include "sim/cluster/cluster.h"
#include "sim/cluster/scenario.h"

namespace vpfs::sim_tool {

// A scenario with a cluster that was run.
struct FinishedCluster {
  std::string name;  // of its file
  sim::ClusterScenario scenario;
  sim::ClusterResult result;
};

// What each application did, and the busiest links, in lines for people.
[[nodiscard]] std::string to_table(const FinishedCluster& run);
// Two runs side by side. Applications are matched by their names.
[[nodiscard]] std::string to_comparison(const FinishedCluster& before,
                                        const FinishedCluster& after);
// Everything, with times in seconds. The same for all machines.
[[nodiscard]] std::string to_json(std::span<const FinishedCluster> runs);
// When applications waited and ran, one picture for each run, as SVG.
[[nodiscard]] std::string to_svg(std::span<const FinishedCluster> runs);

}  // namespace vpfs::sim_tool
