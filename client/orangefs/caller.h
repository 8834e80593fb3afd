#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace vpfs::client {

// On whose behalf requests are sent.
struct Caller {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups = {};  // supplementary
  std::string jobid = {};                  // the hint on every request for an object; "" sends none
};
// Shared by the views and open files of one caller.
using CallerPtr = std::shared_ptr<const Caller>;

}  // namespace vpfs::client
