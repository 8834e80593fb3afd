#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/config_reader.h"
#include "base/units.h"
#include "sim/cluster/network/class_policy.h"
#include "sim/cluster/network/topology.h"

namespace vpfs::sim {

// Slower links and devices are taken for mistakes. With them virtual time may not suffice.
inline constexpr BytesPerSecond kLeastRate = {1'000'000};

// The interconnect of a cluster.
struct ClusterNetwork {
  std::shared_ptr<const Topology> topology;  // immutable, so copies of a scenario share it
  std::string description;                   // "torus 4x4x4"
  // The names of nodes and then switches, if the scenario gives the links; else they have numbers.
  std::vector<std::string> names;
  ClassPolicy policy;

  [[nodiscard]] std::string name_of(VertexId vertex) const;
};

// Reads the mapping `network`. Without a topology that is possible, `topology` stays null and an
// error was reported.
[[nodiscard]] ClusterNetwork read_network(ConfigReader reader);

}  // namespace vpfs::sim
