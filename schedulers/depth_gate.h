#pragma once

#include <cstdint>
#include <string_view>

#include "schedulers/scheduler.h"

namespace vpfs {

// The WaitReason of a head request that nothing stands before.
inline constexpr std::string_view kIsNext = "is the next to be sent";

// Counts what is outstanding at the data server and says whether one more request may join it
// (the rule stands at Depth).
class DepthGate {
 public:
  explicit DepthGate(Depth depth) : depth_(depth) {}

  [[nodiscard]] bool admits(Cost cost) const {
    return requests_ == 0 ||
           (requests_ < depth_.requests && cost_ <= depth_.cost && cost <= depth_.cost - cost_);
  }
  // REQUIRES: admits(cost), so the sum of costs never overflows.
  void start(Cost cost) {
    ++requests_;
    cost_ += cost;
  }
  // `cost` as it was given to start().
  void finish(Cost cost);

  [[nodiscard]] std::uint32_t requests() const { return requests_; }
  // Why a request of this cost may not start; empty when it may.
  [[nodiscard]] std::string_view reason(Cost cost) const;

 private:
  Depth depth_;
  std::uint32_t requests_ = 0;
  Cost cost_ = 0;
};

}  // namespace vpfs
