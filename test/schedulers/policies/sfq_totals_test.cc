// Service elsewhere [DSFQ]: what flows on several servers get in total.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/registry.h"
#include "test/support/simulation/flow_simulation.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kDepth = 4;
constexpr std::uint64_t kSize = 64 * kKiB;
constexpr Duration kStep = 10ms;  // between the coordinator's messages

// Servers of the same speed, each behind its own scheduler. A coordinator tells every scheduler
// what its flows got from the others.
class ClusterWithTotals {
 public:
  // uses[flow]: the servers that it has requests for all the time.
  ClusterWithTotals(std::size_t servers, std::uint64_t capacity,
                    const std::vector<std::uint32_t>& weights,
                    const std::vector<std::vector<bool>>& uses, std::uint64_t size = kSize)
      : flows_(weights.size()), told_(servers, std::vector<Cost>(weights.size(), 0)) {
    for (std::size_t server = 0; server < servers; ++server) {
      std::vector<FlowWork> works;
      for (std::size_t flow = 0; flow < flows_; ++flow) {
        works.push_back({.share = {.weight = weights[flow]},
                         .least_size = size,
                         .most_size = size,
                         .first = uses[flow][server] ? Duration::zero() : 10'000h});
      }
      schedulers_.push_back(make_scheduler("sfq", {.depth = {.requests = kDepth}}).value());
      simulations_.push_back(std::make_unique<FlowSimulation>(
          *schedulers_.back(), sim::Device::Settings{.cost_per_second = capacity}, works, server));
    }
  }

  void run(Duration length) {
    for (Duration passed = {}; passed < length; passed += kStep) {
      for (const auto& simulation : simulations_) simulation->run(kStep);
      for (std::uint32_t flow = 0; flow < flows_; ++flow) tell(flow);
    }
  }
  FlowSimulation& server(std::size_t index) { return *simulations_[index]; }
  [[nodiscard]] Cost total(std::uint32_t flow) const {
    Cost sum = 0;
    for (const auto& simulation : simulations_) sum += simulation->sent_cost(flow);
    return sum;
  }

 private:
  void tell(std::uint32_t flow) {
    const Cost sum = total(flow);
    for (std::size_t server = 0; server < schedulers_.size(); ++server) {
      const Cost elsewhere = sum - simulations_[server]->sent_cost(flow);
      const Cost more = elsewhere - std::exchange(told_[server][flow], elsewhere);
      if (more == 0) continue;
      schedulers_[server]->served_elsewhere(AppId{flow}, more, kStep, simulations_[server]->now());
    }
  }

  std::size_t flows_;
  std::vector<std::vector<Cost>> told_;
  std::vector<std::unique_ptr<Scheduler>> schedulers_;
  std::vector<std::unique_ptr<FlowSimulation>> simulations_;
};

// Two flows, some servers for each alone and some for both. The shared ones are divided so that the
// totals follow the weights, or go to one flow as a whole where that does not suffice.
TEST(SfqTotals, TotalsFollowTheWeightsAsFarAsTheTopologyAllows) {
  constexpr std::uint64_t kCapacity = 100 * kMiB;
  constexpr double kSeconds = 2;
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const std::size_t only_first = random() % 3;
    const std::size_t only_second = random() % 4;
    const std::size_t shared = 1 + random() % 3;
    const std::size_t servers = only_first + only_second + shared;
    const std::vector<std::uint32_t> weights = {static_cast<std::uint32_t>(1 + random() % 3),
                                                static_cast<std::uint32_t>(1 + random() % 3)};
    std::vector<std::vector<bool>> uses(2, std::vector<bool>(servers));
    for (std::size_t server = 0; server < servers; ++server) {
      uses[0][server] = server < only_first + shared;
      uses[1][server] = server >= only_first;
    }
    ClusterWithTotals cluster(servers, kCapacity, weights, uses);
    cluster.run(2s);

    const double each = kCapacity * kSeconds;
    const double wanted =
        each * static_cast<double>(servers) * weights[0] / (weights[0] + weights[1]);
    const double ideal = std::clamp(wanted, static_cast<double>(only_first) * each,
                                    static_cast<double>(only_first + shared) * each);
    // The error on every shared server: the SFQ(D) bound, the service of a step before its report,
    // and the one request in each step that service elsewhere cannot hold back.
    const double slack =
        static_cast<double>(shared) *
        (2.0 * (kDepth + 1) * kSize * 3 + 2.0 * kCapacity * 1e-2 * static_cast<double>(servers) +
         kSeconds * 100 * kSize);
    const double off = std::abs(static_cast<double>(cluster.total(0)) - ideal);
    worst = std::max(worst, off / slack);
    EXPECT_LE(off, slack) << "weights " << weights[0] << " and " << weights[1] << ", servers "
                          << only_first << " + " << shared << " + " << only_second;
  }
  std::cout << "seeds 1 to 100: at most " << worst << " of the slack\n";
}

TEST(SfqTotals, OneApplicationOnTwoServersAndOneOnThreeGetEqualTotals) {
  ClusterWithTotals cluster(4, 100 * kMiB, {1, 1},
                            {{true, true, false, false}, {false, true, true, true}});
  cluster.run(2s);
  // The second flow should get only one request in each step on the server that both use.
  const double leak = 200 * kSize;
  EXPECT_NEAR(static_cast<double>(cluster.total(0)), 400.0 * kMiB - leak, 2.0 * kMiB);
  EXPECT_NEAR(static_cast<double>(cluster.total(1)), 400.0 * kMiB + leak, 2.0 * kMiB);
}

}  // namespace
}  // namespace vpfs
