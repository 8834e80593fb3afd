// Two applications with one request in flight each, as two FUSE mounts have, on a server that does
// one request at a time. Both think for a while that jitters.
#include <algorithm>
#include <chrono>
#include <iostream>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "schedulers/policies/anticipation_settings.h"
#include "schedulers/policies/registry.h"
#include "test/support/simulation/flow_simulation.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

struct Case {
  std::uint32_t weight;  // of the first application; the second one has 1
  Duration service;
  Duration think;
  std::uint32_t max_loss;  // thousandths
};

// Without slots that are kept the two alternate, and the server is never idle while think <
// service. For each r requests of the first application, one of the second is done in one of its
// thinking times: r + 1 requests take r (think + service) + service - think. The ratio is the
// weight, or as much less as the loss demands: (r + 1) service >= (1 - max_loss) of that time.
double feasible(const Case& of) {
  const double kept = 1 - of.max_loss / 1000.0;
  const double service = in_seconds(of.service);
  const double think = in_seconds(of.think);
  // What each unit of r adds to the service that the bound demands, beyond its own.
  const double gain = kept * (think + service) - service;
  if (gain <= 0) return of.weight;
  const double most = (service - kept * (service - think)) / gain;
  return std::clamp(most, 1.0, static_cast<double>(of.weight));
}

struct Outcome {
  double ratio;
  double total;  // as a part of what the server can do
};

Outcome run(const Case& of, bool anticipates) {
  constexpr std::uint64_t kSize = 64 * kKiB;
  SchedulerSettings settings = {.depth = {.requests = 8}};
  settings.own.set(AnticipationSettings{.on = anticipates, .max_loss = of.max_loss});
  const auto scheduler = make_scheduler("sfq", settings).value();
  FlowWork work = {.outstanding = 1,
                   .least_size = kSize,
                   .most_size = kSize,
                   .think = of.think,
                   .think_spread = of.think / 2};
  FlowWork heavier = work;
  heavier.share.weight = of.weight;
  const auto speed =
      static_cast<std::uint64_t>(static_cast<double>(kSize) / in_seconds(of.service));
  FlowSimulation simulation(*scheduler, {.cost_per_second = speed}, {heavier, work}, 1);
  simulation.run_requests(4000);
  const Cost before[] = {simulation.done(0), simulation.done(1)};
  const TimePoint begin = simulation.now();
  simulation.run_requests(8000);
  const auto first = static_cast<double>(simulation.done(0) - before[0]);
  const auto second = static_cast<double>(simulation.done(1) - before[1]);
  const double time = in_seconds(simulation.now() - begin);
  return {.ratio = first / second, .total = (first + second) / time / static_cast<double>(speed)};
}

TEST(SfqOneInFlight, TheRatioIsTheFeasibleOne) {
  for (const std::uint32_t max_loss : {100U, 50U}) {
    for (const std::uint32_t weight : {2U, 4U}) {
      for (const Duration service : {Duration(200us), Duration(500us), Duration(1000us)}) {
        for (const int part : {20, 5}) {
          const Case of = {weight, service, service / part, max_loss};
          const Outcome with = run(of, true);
          const double best = feasible(of);
          std::cout << weight << ":1, service " << service / 1us << " us, think 1/" << part
                    << ", max_loss " << max_loss << ": " << run(of, false).ratio << " -> "
                    << with.ratio << " of " << best << ", total " << with.total << "\n";
          SCOPED_TRACE(::testing::Message() << weight << ":1, " << service / 1us << " us, think 1/"
                                            << part << ", max_loss " << max_loss);
          EXPECT_GE(with.ratio, 0.95 * best);
          EXPECT_GE(with.total, 1 - max_loss / 1000.0 - 0.005);
        }
      }
    }
  }
}

}  // namespace
}  // namespace vpfs
