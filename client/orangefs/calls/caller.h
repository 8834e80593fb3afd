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
  // Hints on every request for an object; "" sends none.
  std::string jobid = {};
  std::string virtual_pfs = {};  // the hint "vpfs"
};
// Shared by the views and open files of one caller.
using CallerPtr = std::shared_ptr<const Caller>;

}  // namespace vpfs::client
