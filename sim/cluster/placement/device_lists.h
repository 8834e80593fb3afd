#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace vpfs::sim {

// The lists of devices that serve in the order of a trace: by block, and in it by task. A device
// looks at an access only when all that are listed before it have come; what has come in the
// meantime waits.
class DeviceLists {
 public:
  using Number = std::uint32_t;  // of an access, as add() gave it

  explicit DeviceLists(std::size_t devices) : lists_(devices) {}

  // Adds an access at the end of a device's list.
  Number add(std::uint32_t device);
  // An access has come. Calls `serve`, perhaps at once, when the device looks at it. The functions
  // may call come(). REQUIRES: it has not come before.
  void come(Number access, std::function<void()> serve);

 private:
  struct Entry {
    std::uint32_t device = 0;
    bool has_come = false;
    std::function<void()> serve;
  };
  struct List {
    std::vector<Number> accesses;
    std::size_t next = 0;
  };

  std::vector<Entry> entries_;
  std::vector<List> lists_;
};

}  // namespace vpfs::sim
