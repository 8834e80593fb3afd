#include "sim/cluster/placement/device_lists.h"

#include <utility>

#include "base/check.h"

namespace vpfs::sim {

DeviceLists::Number DeviceLists::add(std::uint32_t device) {
  const auto number = static_cast<Number>(entries_.size());
  entries_.push_back({.device = device});
  lists_[device].accesses.push_back(number);
  return number;
}

void DeviceLists::come(Number access, std::function<void()> serve) {
  Entry& entry = entries_[access];
  VPFS_ASSERT(!entry.has_come);
  entry.has_come = true;
  entry.serve = std::move(serve);
  List& list = lists_[entry.device];
  while (list.next < list.accesses.size() && entries_[list.accesses[list.next]].has_come) {
    const std::function<void()> now =
        std::exchange(entries_[list.accesses[list.next]].serve, nullptr);
    ++list.next;
    now();
  }
}

}  // namespace vpfs::sim
