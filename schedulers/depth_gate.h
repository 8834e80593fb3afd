#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "schedulers/request.h"

namespace vpfs {

// How much may be outstanding at the data server at once. Whichever limit is reached first holds. A
// request counts for at most half of `cost`, so two of the largest may be outstanding. If one had
// to go alone, the server would run dry before it and after it.
struct Depth {
  std::uint32_t requests = 16;  // at least 1
  Cost cost = UINT64_MAX;       // the sum of costs, as they count

  bool operator==(const Depth&) const = default;
};

// DepthController finds the number of requests between these; it replaces Depth::requests.
struct AutoDepth {
  std::uint32_t least = 1;
  std::uint32_t most = 1024;

  bool operator==(const AutoDepth&) const = default;
};

// Counts what is outstanding at the data server and says whether one more request may join it
// (the rule is at Depth).
class DepthGate {
 public:
  explicit DepthGate(Depth depth) : depth_(depth) { set_requests(depth.requests); }

  // Whether a request may pass if its cost allows it.
  [[nodiscard]] bool has_room() const { return requests() < depth_.requests; }
  // Whether its cost allows a request to pass, whatever the number of requests is.
  [[nodiscard]] bool cost_fits(Cost cost) const {
    if (requests() == 0) return true;
    const Cost sum = mine_.cost + before_.cost;
    return sum <= depth_.cost && counted(cost) <= depth_.cost - sum;
  }
  [[nodiscard]] bool admits(Cost cost) const { return has_room() && cost_fits(cost); }
  // REQUIRES: admits(cost), so the sum of costs never overflows.
  void start(Cost cost) {
    ++mine_.requests;
    mine_.cost += counted(cost);
  }
  // `cost` as it was given to start().
  void finish(Cost cost) {
    VPFS_ASSERT(mine_.requests > 0 && mine_.cost >= counted(cost));
    --mine_.requests;
    mine_.cost -= counted(cost);
  }

  struct Load {
    std::uint32_t requests = 0;
    Cost cost = 0;
  };
  [[nodiscard]] Load load() const {
    return {.requests = requests(), .cost = mine_.cost + before_.cost};
  }
  // occupy() counts requests that are at the data server already as outstanding, whatever the
  // depth. vacate(): one of them has ended.
  void occupy(Load load) { before_ = load; }
  void vacate(Cost cost);
  // Several have; no more than occupy() counted.
  void vacate(Load load) {
    before_.requests -= std::min(before_.requests, load.requests);
    before_.cost -= before_.requests == 0 ? before_.cost : std::min(before_.cost, load.cost);
  }

  // Changes the number of requests; zero counts as one. More may be outstanding for a while.
  void set_requests(std::uint32_t requests) {
    depth_.requests = std::max<std::uint32_t>(requests, 1);
  }
  [[nodiscard]] const Depth& depth() const { return depth_; }
  [[nodiscard]] std::uint32_t requests() const { return mine_.requests + before_.requests; }
  // Why a request of this cost may not start; empty when it may.
  [[nodiscard]] std::string_view reason(Cost cost) const;

 private:
  [[nodiscard]] Cost counted(Cost cost) const { return std::min(cost, most_counted_); }

  Depth depth_;
  Cost most_counted_ = depth_.cost - depth_.cost / 2;
  Load mine_;
  Load before_;  // of occupy(), counted by another depth
};

}  // namespace vpfs
