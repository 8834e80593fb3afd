#pragma once

#include <cstdint>

#include "base/units.h"
#include "schedulers/request.h"

namespace vpfs {

// The cost of a request in byte-equivalents: per_request + bytes x factor(read or write), or
// per_request + metadata for a metadata operation. Factors are in thousandths so that costs stay
// integers.
class CostModel {
 public:
  struct Settings {
    Bytes per_request = {0};
    std::uint32_t read_factor_permille = 1000;   // 1 ... 1'000'000
    std::uint32_t write_factor_permille = 1000;  // 1 ... 1'000'000
    Bytes metadata = {16 * kKiB};

    bool operator==(const Settings&) const = default;
  };

  explicit CostModel(Settings settings) : settings_(settings) {}

  // Between 1 and kMaxCost, whatever the size.
  [[nodiscard]] Cost cost(IoKind kind, Bytes size) const;

 private:
  Settings settings_;
};

}  // namespace vpfs
