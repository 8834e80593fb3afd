#pragma once

#include <cstddef>

#include "base/clock.h"

namespace vpfs::proxy {

// Gives memory back to the system that the process needed for a peak and does not use any more: the
// allocator keeps it by itself. Belongs to one thread; works on the memory of all.
class SpareMemory {
 public:
  // To be called every kInterval. Gives back what was free at this look and at the one before, if
  // it is much: what a load takes and frees all the time stays.
  void look();
  static constexpr Duration kInterval = std::chrono::seconds(10);

 private:
  std::size_t free_before_ = 0;
  std::size_t kept_ = 0;  // free, but not given back
};

}  // namespace vpfs::proxy
