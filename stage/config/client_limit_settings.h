#pragma once

#include <cstddef>
#include <optional>

namespace vpfs::stage {

// How many held requests of a client node are allowed; see ClientLimits.
struct ClientLimitSettings {
  // The allowance of each client. Nothing: two thirds of the most connections that the client had
  // open, at least ClientLimits::kLeast, and no limit while it shows only one application.
  std::optional<std::size_t> most;
  bool enabled = true;
};

}  // namespace vpfs::stage
