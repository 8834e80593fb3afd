#include "sim/placement/data_place.h"

namespace vpfs::sim {

std::uint32_t DataPlace::draw(std::uint32_t task, std::uint32_t tasks, std::uint32_t remote_percent,
                              Random& random) const {
  const std::uint32_t its_own = own(task, tasks);
  const bool is_remote = random.chance(remote_percent);
  // The same numbers are drawn whatever the access is, so that runs can be compared.
  const std::uint64_t draw = random.next();
  if (access == Access::local || !is_remote || places() == 1) return its_own;
  if (access == Access::affinity) return (its_own + 1) % places();
  return static_cast<std::uint32_t>((its_own + 1 + draw % (places() - 1)) % places());
}

}  // namespace vpfs::sim
