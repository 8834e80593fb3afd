#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/config_reader.h"
#include "sim/cluster/application_section.h"
#include "sim/cluster/network_section.h"
#include "sim/cluster/placement/batch.h"
#include "sim/cluster/placement/storage.h"

namespace vpfs::sim {

// The second kind of scenario: a cluster with a network, storage and a batch system, and the
// applications that it runs. There are no proxies.
struct ClusterScenario {
  ClusterNetwork network;
  StorageRates storage;
  Batch::Settings batch;
  std::uint64_t seed = 1;
  std::vector<ClusterApplication> applications;
};

// Whether the text is meant as a scenario of this kind, whatever mistakes it has.
[[nodiscard]] bool is_cluster_scenario(std::string_view text);

// Reads the schema of conf/sim/data-placement.yaml and conf/sim/network-priority.yaml. Meaningful
// only when `errors` stays empty.
[[nodiscard]] ClusterScenario read_cluster_scenario(std::string_view text, ConfigErrors& errors);

}  // namespace vpfs::sim
