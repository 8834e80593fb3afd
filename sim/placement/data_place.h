#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/random.h"
#include "sim/network/topology.h"

namespace vpfs::sim {

// Which device a task's access goes to.
enum class Access : std::uint8_t {
  disperse,  // remote ones to any device but its own, at random each time
  affinity,  // remote ones to one device that stays the same, each device for as many tasks
  local,     // all to its own
};

// Where the data of an application lie: on devices of nodes, or on central servers.
struct DataPlace {
  std::vector<NodeId> devices;  // nodes; a node may stand there for several tasks. Empty: central
  std::uint32_t servers = 0;    // central ones, the first so many
  Access access = Access::disperse;

  [[nodiscard]] bool is_central() const { return devices.empty(); }
  [[nodiscard]] std::uint32_t places() const {
    return is_central() ? servers : static_cast<std::uint32_t>(devices.size());
  }
  // A task's own place: tasks are divided evenly among them, in their order. REQUIRES: places() >
  // 0.
  [[nodiscard]] std::uint32_t own(std::uint32_t task, std::uint32_t tasks) const {
    return static_cast<std::uint32_t>(std::uint64_t{task} * places() / tasks);
  }
  // The place of one access.
  [[nodiscard]] std::uint32_t draw(std::uint32_t task, std::uint32_t tasks,
                                   std::uint32_t remote_percent, Random& random) const;
};

}  // namespace vpfs::sim
