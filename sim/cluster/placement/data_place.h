#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/cluster/network/topology.h"
#include "sim/engine/random.h"

namespace vpfs::sim {

// Which device a task's remote accesses go to. Those to central servers go to any, at random each
// time.
enum class Access : std::uint8_t {
  disperse,  // any, at random each time
  affinity,  // one that stays the same, each device for as many tasks
  local,     // as affinity; but a task whose node has a device has no remote accesses
};

// Where the data of an application are: on devices of nodes, or on central servers.
struct DataPlace {
  std::vector<NodeId> devices;  // nodes, each once. Empty: central
  std::uint32_t servers = 0;    // central ones, the first so many
  Access access = Access::disperse;

  [[nodiscard]] bool is_central() const { return devices.empty(); }
  [[nodiscard]] std::uint32_t places() const {
    return is_central() ? servers : static_cast<std::uint32_t>(devices.size());
  }
  // The place on a node itself. Without one, all accesses from there are remote.
  [[nodiscard]] std::optional<std::uint32_t> home(NodeId node) const;
  // The device that a task keeps to: task mod devices. With as many devices as tasks that would be
  // its own one; then it is the one half way round. REQUIRES: !is_central().
  [[nodiscard]] std::uint32_t kept(std::uint32_t task, std::uint32_t tasks) const;
  // The place of one access of a task, whose node has that place, or none.
  [[nodiscard]] std::uint32_t draw(std::uint32_t task, std::uint32_t tasks,
                                   std::optional<std::uint32_t> home, std::uint32_t remote_percent,
                                   Random& random) const;
};

}  // namespace vpfs::sim
