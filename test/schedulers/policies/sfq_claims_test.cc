// Claims of flows that come back as expected: what they can cost the others (docs/schedulers.md).
#include <algorithm>
#include <iostream>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/anticipation.h"
#include "schedulers/policies/registry.h"
#include "test/schedulers/policies/anticipating.h"
#include "test/support/drift_watch.h"
#include "test/support/simulation/flow_simulation.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

FlowWork work_of_size(std::uint32_t weight, std::uint32_t in_flight, std::uint64_t size,
                      Duration think = {}) {
  return {.share = {.weight = weight},
          .outstanding = in_flight,
          .least_size = size,
          .most_size = size,
          .think = think};
}

double step_of(const FlowWork& flow) {
  return static_cast<double>(flow.most_size) / flow.share.weight;
}

// What a flow may be behind, in cost / weight, beside others.
double most_behind(const FlowWork& flow, const std::vector<FlowWork>& all) {
  double step = 0;
  double largest = 0;
  for (const FlowWork& each : all) {
    step = std::max(step, step_of(each));
    largest = std::max(largest, static_cast<double>(each.most_size));
  }
  return std::min(static_cast<double>(Anticipation::kMostBehind) * step,
                  static_cast<double>(Anticipation::kMostClaim) * largest / flow.share.weight);
}

// By its weight the heavy one gets 200 requests for each of the other's. Its claim is as many
// requests as it would be with another weight.
TEST(SfqClaims, AHeavyFlowThatComesBackWithManyRequestsHoldsOthersOnlyBriefly) {
  constexpr std::uint32_t kDepth = 8;
  constexpr std::uint32_t kWeight = 200;
  constexpr std::uint64_t kSize = 4 * kMiB;  // 20 ms
  for (const std::uint32_t max_loss : {0U, 100U}) {
    const auto scheduler = anticipating(kDepth, max_loss);
    FlowWork heavy = work_of_size(kWeight, 64, kSize, 30ms);
    heavy.serial = 60s;
    FlowSimulation simulation(*scheduler, {.cost_per_second = 200 * kMiB},
                              {heavy, work_of_size(1, 16, kSize)}, 1);
    TimePoint last = {};
    Duration longest = {};
    simulation.on_done = [&](const IoRequest& request, Cost) {
      if (request.app != AppId{1}) return;
      longest = std::max(longest, simulation.now() - last);
      last = simulation.now();
    };
    simulation.run(180s);
    EXPECT_LE(longest, 20ms * (kWeight + Anticipation::kMostClaim + kDepth + 2)) << max_loss;
    EXPECT_GE(longest, 20ms * kWeight) << max_loss;
  }
}

// Over any time: what comes between two moments of the same run is the difference of what was
// there at both. The other one keeps a queue, and the client never waits with less than it may
// have.
TEST(SfqClaims, AFlowThatAlternatesBetweenOneRequestAndManyGetsItsWeightAndTheBoundAtMost) {
  constexpr std::uint32_t kDepth = 4;
  double worst = 0;
  for (const std::uint32_t weight : {1U, 4U, 50U}) {
    for (const std::uint64_t size : {64 * kKiB, kMiB}) {
      for (const std::uint64_t size_of_other : {64 * kKiB, kMiB}) {
        for (const Duration pause : std::vector<Duration>{1ms, 30ms}) {
          double total[2] = {};
          for (const bool on : {false, true}) {
            FlowWork alternates = work_of_size(weight, 32, size, 300us);
            alternates.active = 400ms;
            alternates.serial = 300ms;
            alternates.pause = pause;
            const FlowWork other = work_of_size(1, 32, size_of_other);
            const auto scheduler = anticipating(kDepth, 100, on);
            FlowSimulation simulation(*scheduler, {.cost_per_second = 400 * kMiB},
                                      {alternates, other}, 1);
            double ahead = 0;
            double least = 0;
            double most = 0;
            simulation.on_done = [&](const IoRequest& request, Cost done) {
              const auto cost = static_cast<double>(done);
              ahead += request.app == AppId{0} ? cost / weight : -cost;
              least = std::min(least, ahead);
              most = std::max(most, ahead - least);
            };
            simulation.run(5s);
            const double bound = (kDepth + 1) * (step_of(alternates) + step_of(other)) +
                                 (on ? most_behind(alternates, {alternates, other}) : 0);
            EXPECT_LE(most, bound) << "weight " << weight << ", " << size << " beside "
                                   << size_of_other << ", pause " << pause / 1us << " us, " << on;
            if (on) worst = std::max(worst, most / bound);
            total[on ? 1 : 0] = static_cast<double>(simulation.done(0));
            EXPECT_LE(total[on ? 1 : 0],
                      weight * (static_cast<double>(simulation.done(1)) + bound));
          }
        }
      }
    }
  }
  std::cout << "at most " << worst << " of the bound\n";
}

// The bound of docs/schedulers.md for every pair of several flows, with requests that do less than
// they were charged.
TEST(SfqClaims, TheBoundHoldsForEveryPairOfSeveralFlows) {
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&](std::uint64_t least, std::uint64_t most) {
      return least + random() % (most - least + 1);
    };
    const auto depth = static_cast<std::uint32_t>(std::uint64_t{1} << draw(0, 4));
    std::vector<FlowWork> flows;
    std::vector<std::uint32_t> weights;
    const std::uint64_t count = draw(2, 6);
    for (std::uint64_t i = 0; i < count; ++i) {
      FlowWork flow =
          work_of_size(static_cast<std::uint32_t>(draw(0, 3) == 0 ? draw(40, 400) : draw(1, 40)),
                       static_cast<std::uint32_t>(draw(0, 1) == 0 ? draw(1, 6) : draw(16, 90)),
                       4 * kKiB << draw(0, 8));
      if (draw(0, 1) == 0) flow.think = std::chrono::microseconds(draw(1, 3000));
      flow.think_spread = flow.think / 2;
      flow.short_percent = draw(0, 1) == 0 ? static_cast<std::uint32_t>(draw(1, 100)) : 0;
      if (draw(0, 1) == 0) {
        flow.active = std::chrono::milliseconds(draw(20, 200));
        flow.serial = flow.active * 3 / 4;
        flow.pause = std::chrono::microseconds(draw(100, 20'000));
      }
      weights.push_back(flow.share.weight);
      flows.push_back(flow);
    }
    const auto scheduler = anticipating(depth, draw(0, 2) == 0 ? 0 : 100);
    DriftWatch watch(weights);
    FlowSimulation simulation(*scheduler,
                              {.parallelism = static_cast<std::uint32_t>(draw(1, 8)),
                               .cost_per_second = draw(50, 2000) * kMiB},
                              flows, seed);
    simulation.on_enqueue = [&](const IoRequest& request) {
      watch.charged(std::to_underlying(request.app), request.cost);
    };
    simulation.on_backlog = [&](std::uint32_t flow, bool has) { watch.backlog(flow, has); };
    simulation.on_done = [&](const IoRequest& request, Cost done) {
      watch.done(std::to_underlying(request.app), done);
    };
    simulation.run_requests(4000);
    for (std::size_t f = 0; f < flows.size(); ++f) {
      for (std::size_t g = f + 1; g < flows.size(); ++g) {
        const double behind = std::max(most_behind(flows[f], flows), most_behind(flows[g], flows));
        const double bound = (depth + 1) * (step_of(flows[f]) + step_of(flows[g])) + behind;
        worst = std::max(worst, watch.worst(f, g) / bound);
        EXPECT_LE(watch.worst(f, g), bound) << "seed " << seed << ", " << f << " and " << g;
      }
    }
  }
  std::cout << "worst drift " << worst << " of the bound\n";
}

// The bound is no larger than it has to be: a flow that has been behind for long, and then has
// many requests, comes near it.
TEST(SfqClaims, TheBoundIsNearlyReached) {
  const auto scheduler = anticipating(1, 0);
  FlowWork returns = work_of_size(1, 64, 64 * kKiB, 2ms);
  returns.serial = 5s;
  const FlowWork other = work_of_size(1, 32, 64 * kKiB);
  DriftWatch watch({1, 1});
  FlowSimulation simulation(*scheduler, {.cost_per_second = 400 * kMiB}, {returns, other}, 1);
  simulation.on_backlog = [&](std::uint32_t flow, bool has) { watch.backlog(flow, has); };
  simulation.on_done = [&](const IoRequest& request, Cost done) {
    watch.done(std::to_underlying(request.app), done);
  };
  simulation.run(10s);
  const double bound =
      2 * (step_of(returns) + step_of(other)) + most_behind(returns, {returns, other});
  EXPECT_GE(watch.worst(0, 1), 0.8 * bound);
  EXPECT_LE(watch.worst(0, 1), bound);
}

}  // namespace
}  // namespace vpfs
