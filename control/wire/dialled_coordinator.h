#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/wire/control.pb.h"

namespace vpfs::control {

// The coordinator that a port connects to, as administrators see it.
struct DialledCoordinator {
  std::string address;                      // that is connected, or was tried last
  std::vector<std::string> addresses = {};  // all that the configuration has
  bool connected = false;
  std::string name = {};     // of the coordinator; "" before the first connection
  WallTime since = {};       // for as long it has been connected, or not
  std::string problem = {};  // the last one; "": none so far
  WallTime problem_at = {};
  std::uint64_t dials = 0;  // attempts to connect
};

[[nodiscard]] StatsReply::Coordinator to_message(const DialledCoordinator& coordinator);

}  // namespace vpfs::control
