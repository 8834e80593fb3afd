#pragma once

#include <cstdint>
#include <string_view>

#include "schedulers/request.h"

namespace vpfs {

// How much may be outstanding at the data server at once. Whichever limit is reached first holds;
// one request is always let through when nothing is outstanding, however large it is.
struct Depth {
  std::uint32_t requests = 16;  // at least 1
  Cost cost = UINT64_MAX;       // the sum of costs

  bool operator==(const Depth&) const = default;
};

// Instead of Depth::requests, a number that finds itself between these (see DepthController).
struct AutoDepth {
  std::uint32_t least = 1;
  std::uint32_t most = 1024;

  bool operator==(const AutoDepth&) const = default;
};

// Counts what is outstanding at the data server and says whether one more request may join it
// (the rule stands at Depth).
class DepthGate {
 public:
  explicit DepthGate(Depth depth) : depth_(depth) {}

  // Whether some request might pass, if its cost allows.
  [[nodiscard]] bool has_room() const { return requests_ == 0 || requests_ < depth_.requests; }
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

  struct Load {
    std::uint32_t requests = 0;
    Cost cost = 0;
  };
  [[nodiscard]] Load load() const { return {.requests = requests_, .cost = cost_}; }
  // Counts as outstanding what is at the data server already, whatever the depth.
  void occupy(Load load) {
    requests_ += load.requests;
    cost_ += load.cost;
  }

  // What is outstanding may be more than the new depth for a while.
  void set_depth(Depth depth) { depth_ = depth; }
  [[nodiscard]] const Depth& depth() const { return depth_; }
  [[nodiscard]] std::uint32_t requests() const { return requests_; }
  // Why a request of this cost may not start; empty when it may.
  [[nodiscard]] std::string_view reason(Cost cost) const;

 private:
  Depth depth_;
  std::uint32_t requests_ = 0;
  Cost cost_ = 0;
};

}  // namespace vpfs
