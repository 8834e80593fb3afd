#pragma once

#include <string>
#include <vector>

#include "base/config_reader.h"
#include "sim/cluster/network/topologies.h"

namespace vpfs::sim {

// The links of a network as a scenario lists them, and the names of its nodes and switches.
struct GivenNetwork {
  GivenLinks links;
  std::vector<std::string> names;  // nodes first
};

// Reads `nodes`, `switches`, `links` and `link_rate` of the mapping `network`, and reports what
// makes them no network: unknown names, links to themselves, nodes that do not reach each other.
[[nodiscard]] GivenNetwork read_given_network(ConfigReader& reader);

}  // namespace vpfs::sim
