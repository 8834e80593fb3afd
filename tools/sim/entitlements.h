#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "tools/sim/report.h"

namespace vpfs::sim_tool {

// What the configuration promises each application's virtual PFS of all that was moved in an
// interval: its part of what the virtual PFSes share that moved anything then.
class Entitlements {
 public:
  // The run outlives it.
  explicit Entitlements(const FinishedRun& run);

  // Nothing: the application is away. Both are numbers from 0.
  [[nodiscard]] std::optional<Bytes> in(std::size_t application, std::size_t interval) const;
  [[nodiscard]] Bytes in_all(std::size_t application) const;

 private:
  void fill_in(const std::vector<std::size_t>& groups, std::size_t interval);

  const FinishedRun& run_;
  std::vector<std::vector<Bytes>> entitled_;  // by application and interval
};

}  // namespace vpfs::sim_tool
