#pragma once

#include <cstdint>
#include <vector>

#include "tools/selftest/phase.h"

namespace vpfs::selftest {

struct PlanInput {
  Duration time = {};   // of all measurements, and of writing the files that are read
  bool direct = false;  // there is a way past the proxy
  bool shared = false;  // a share holds the load, so that the server does not show what it can do
  Bytes size = {kMiB};  // of a large request
  std::uint64_t proxy_depth = 0;       // requests that the proxy lets to the server
  std::uint64_t most_in_flight = 128;  // of each application that shares
  bool weights = true;                 // the policy knows them
  bool limits = true;
};

// In this many requests in flight the costs are measured.
inline constexpr std::uint64_t kCostDepth = 32;
inline constexpr Bytes kSmall = {4 * kKiB};

// The measurements, in their order.
[[nodiscard]] std::vector<Phase> plan(const PlanInput& input);

}  // namespace vpfs::selftest
