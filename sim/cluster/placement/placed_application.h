#pragma once

#include "sim/cluster/network/network.h"
#include "sim/cluster/network/topology.h"
#include "sim/cluster/placement/storage.h"
#include "sim/engine/engine.h"

namespace vpfs::sim {

// What applications run on; all outlive them.
struct ClusterMachine {
  Engine& engine;
  Network& network;
  const Topology& topology;
  const Storage& storage;
};

// An application that a batch system runs. It says by a function of its maker when it has ended.
class PlacedApplication {
 public:
  PlacedApplication() = default;
  PlacedApplication(const PlacedApplication&) = delete;
  PlacedApplication& operator=(const PlacedApplication&) = delete;
  virtual ~PlacedApplication() = default;

  virtual void start() = 0;
};

}  // namespace vpfs::sim
