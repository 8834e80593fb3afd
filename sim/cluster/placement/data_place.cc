#include "sim/cluster/placement/data_place.h"

#include <algorithm>

namespace vpfs::sim {

std::optional<std::uint32_t> DataPlace::home(NodeId node) const {
  const auto found = std::ranges::find(devices, node);
  if (found == devices.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - devices.begin());
}

std::uint32_t DataPlace::kept(std::uint32_t task, std::uint32_t tasks) const {
  return (task + (places() == tasks ? tasks / 2 : 0)) % places();
}

std::uint32_t DataPlace::draw(std::uint32_t task, std::uint32_t tasks,
                              std::optional<std::uint32_t> home, std::uint32_t remote_percent,
                              Random& random) const {
  // The same numbers are drawn whatever the access is, so that runs can be compared.
  const bool is_remote = random.chance(remote_percent);
  const std::uint64_t draw = random.next();
  if (home && (!is_remote || access == Access::local)) return *home;
  if (is_central() || access == Access::disperse) {
    return static_cast<std::uint32_t>(draw % places());
  }
  return kept(task, tasks);
}

}  // namespace vpfs::sim
