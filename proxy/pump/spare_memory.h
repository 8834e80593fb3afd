#pragma once

#include <cstddef>

#include "base/clock.h"

namespace vpfs::proxy {

// Returns memory to the system after a peak, because the allocator keeps it. Belongs to one thread;
// works on the memory of all.
class SpareMemory {
 public:
  // Called every kInterval. Returns the memory that was free at this call and at the last one, if
  // it is much. Memory that a load keeps taking and freeing stays.
  void look();
  static constexpr Duration kInterval = std::chrono::seconds(10);

 private:
  std::size_t free_before_ = 0;
  std::size_t kept_ = 0;  // free, but not returned
};

}  // namespace vpfs::proxy
