#include "sim/cluster/placement/central_groups.h"

#include <algorithm>

#include "base/check.h"

namespace vpfs::sim {

CentralGroups::CentralGroups(std::uint32_t tasks, std::uint32_t io_tasks)
    : tasks_(tasks), groups_(io_tasks), size_(io_tasks == 0 ? 0 : tasks / io_tasks) {
  VPFS_ASSERT(io_tasks >= 1 && io_tasks <= tasks);
}

std::uint32_t CentralGroups::leader(std::uint32_t task) const {
  return std::min(task / size_, groups_ - 1) * size_;
}

std::uint32_t CentralGroups::end(std::uint32_t leader) const {
  return leader / size_ + 1 == groups_ ? tasks_ : leader + size_;
}

}  // namespace vpfs::sim
