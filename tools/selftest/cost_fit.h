#pragma once

#include <optional>
#include <span>

#include "base/units.h"

namespace vpfs::selftest {

// How many requests of one kind and size a server did.
struct CostPoint {
  bool reads = false;
  Bytes size = {};
  double requests_per_second = 0;
};

// The cost model of docs/admin/sizing.md: a request takes as long as `per_request` bytes and its
// own, and a byte that is written as long as `write_factor` bytes that are read.
struct CostFit {
  double per_request = 0;  // bytes
  double write_factor = 1;
  double worst_error = 0;  // of the model, as a part of the time that a request really took
};

// The model with the least relative errors. Nothing: the points do not tell, as there are too few,
// or as larger requests took no longer.
[[nodiscard]] std::optional<CostFit> fit_costs(std::span<const CostPoint> points);

}  // namespace vpfs::selftest
