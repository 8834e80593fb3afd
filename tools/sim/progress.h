#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/system_clock.h"
#include "base/units.h"

namespace vpfs::sim_tool {

// What people see of a run, on stderr: a line that changes on a terminal, and one at the end. The
// output proper is the same on every machine; how long a run took is not.
class Progress {
 public:
  explicit Progress(std::string name);

  void show(std::string_view what, std::uint64_t events) const;
  void end(Duration virtual_time, std::uint64_t events) const;

 private:
  std::string name_;
  bool is_live_;
  SystemClock clock_;
  TimePoint begin_;
};

}  // namespace vpfs::sim_tool
