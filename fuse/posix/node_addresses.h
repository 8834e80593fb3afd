#pragma once

#include <set>
#include <string>
#include <vector>

namespace vpfs::fuse {

// The node that a mount is on, as its host is configured now.
struct Node {
  // The host's own name, and its part before the first dot.
  std::set<std::string> names;
  // Those of all interfaces except link-local ones, then those of the loopback. At least one.
  std::vector<std::string> addresses;
};

// Asks the kernel, and no name service.
[[nodiscard]] Node this_node();

}  // namespace vpfs::fuse
