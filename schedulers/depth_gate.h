#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "schedulers/request.h"

namespace vpfs {

// How much may be outstanding at the data server at once. Whichever limit is reached first holds. A
// request counts for half of `cost` at most, so that the largest need not go alone, behind a server
// that has run dry and before one that does: two of them are outstanding at most.
struct Depth {
  std::uint32_t requests = 16;  // at least 1
  Cost cost = UINT64_MAX;       // the sum of costs, as they count

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
  [[nodiscard]] bool has_room() const { return requests() == 0 || requests() < depth_.requests; }
  [[nodiscard]] bool admits(Cost cost) const {
    if (requests() == 0) return true;
    const Cost sum = mine_.cost + before_.cost;
    return requests() < depth_.requests && sum <= depth_.cost && counted(cost) <= depth_.cost - sum;
  }
  // REQUIRES: admits(cost), so the sum of costs never overflows.
  void start(Cost cost) {
    ++mine_.requests;
    mine_.cost += counted(cost);
  }
  // `cost` as it was given to start().
  void finish(Cost cost);

  struct Load {
    std::uint32_t requests = 0;
    Cost cost = 0;
  };
  [[nodiscard]] Load load() const {
    return {.requests = requests(), .cost = mine_.cost + before_.cost};
  }
  // Counts as outstanding what is at the data server already, whatever the depth; one of it has
  // ended.
  void occupy(Load load) { before_ = load; }
  void vacate(Cost cost);

  // Another number of requests. What is outstanding may be more for a while.
  void set_requests(std::uint32_t requests) { depth_.requests = requests; }
  [[nodiscard]] const Depth& depth() const { return depth_; }
  [[nodiscard]] std::uint32_t requests() const { return mine_.requests + before_.requests; }
  // Why a request of this cost may not start; empty when it may.
  [[nodiscard]] std::string_view reason(Cost cost) const;

 private:
  [[nodiscard]] Cost counted(Cost cost) const {
    return std::min(cost, depth_.cost - depth_.cost / 2);
  }

  Depth depth_;
  Load mine_;
  Load before_;  // of occupy(), counted as another depth had it
};

}  // namespace vpfs
