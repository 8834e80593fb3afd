// Limits and minimums of `sfq` beside its weights, over random workloads in virtual time.
#include <iostream>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/registry.h"
#include "test/schedulers/draw.h"
#include "test/support/drift_watch.h"
#include "test/support/rate_watch.h"
#include "test/support/simulation/flow_simulation.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

FlowWork random_weighted_work(Draw& draw) {
  FlowWork work = {.share = {.weight = draw.weight(3)}};
  work.outstanding = static_cast<std::uint32_t>(draw.one_in(3) ? draw(2, 6) : draw(16, 100));
  work.least_size = 4 * kKiB << draw(0, 6);
  work.most_size = work.least_size * draw(1, 4);
  work.first = std::chrono::milliseconds(draw(0, 20));
  if (draw.one_in(3)) {
    work.active = std::chrono::milliseconds(draw(1, 100));
    work.pause = std::chrono::milliseconds(draw(1, 100));
  }
  return work;
}

struct RandomServer {
  std::uint32_t depth;
  sim::Device::Settings settings;
};

RandomServer random_server(Draw& draw) {
  const auto depth = static_cast<std::uint32_t>(std::uint64_t{1} << draw(0, 5));
  return {.depth = depth,
          .settings = {.parallelism = static_cast<std::uint32_t>(draw(1, std::min(depth, 8U))),
                       .cost_per_second = draw(50, 1000) * kMiB}};
}

void run_requests(FlowSimulation& simulation, std::size_t flows, std::uint64_t requests) {
  for (std::uint64_t count = 0; count < requests && simulation.now() < TimePoint{} + 10s;) {
    simulation.run(5ms);
    count = 0;
    for (std::uint32_t flow = 0; flow < flows; ++flow) count += simulation.count(flow);
  }
}

// Limited flows never pass their limits, whatever else changes, and the others share what is left
// as if those were not there: the SFQ(D) bound holds between them over every interval.
TEST(SfqLimits, AreNeverPassedAndWhatTheyLeaveGoesToTheOthersByWeight) {
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Draw draw(seed);
    const RandomServer server = random_server(draw);
    std::vector<FlowWork> flows(draw(2, 6));
    std::vector<std::uint32_t> weights;
    std::vector<RateWatch> bytes;
    std::vector<RateWatch> operations;
    for (FlowWork& work : flows) {
      work = random_weighted_work(draw);
      weights.push_back(work.share.weight);
      Share& share = work.share;
      share.burst = {draw(1, 2 * kMiB)};
      share.burst_operations = draw(1, 20);
      if (draw.one_in(3)) share.rate = {draw(1, 100) * kMiB / 4};
      if (draw.one_in(4)) share.operations = draw(1, 2000);
      bytes.emplace_back(share.rate.count);
      operations.emplace_back(share.operations);
    }
    const auto limited = [&](std::uint32_t flow) {
      return flows[flow].share.rate.count > 0 || flows[flow].share.operations > 0;
    };
    const auto scheduler = make_scheduler("sfq", {.depth = {.requests = server.depth}}).value();
    FlowSimulation simulation(*scheduler, server.settings, flows, seed);
    DriftWatch drift(weights);
    simulation.on_enqueue = [&](const IoRequest& request) {
      drift.charged(std::to_underlying(request.app), request.cost);
    };
    simulation.on_backlog = [&](std::uint32_t flow, bool backlogged) {
      if (!limited(flow)) drift.backlog(flow, backlogged);
    };
    simulation.on_done = [&](const IoRequest& request, Cost cost) {
      drift.done(std::to_underlying(request.app), cost);
    };
    simulation.on_sent = [&](const IoRequest& request) {
      const auto flow = std::to_underlying(request.app);
      bytes[flow].served(request.size.count, simulation.now());
      operations[flow].served(1, simulation.now());
    };
    run_requests(simulation, flows.size(), 400);
    EXPECT_EQ(simulation.late_answers(), 0U);
    EXPECT_EQ(simulation.idle_answers(), 0U);
    for (std::uint32_t i = 0; i < flows.size(); ++i) {
      const Share& share = flows[i].share;
      const std::uint64_t most = std::max(share.burst.count, flows[i].most_size);
      if (share.rate.count > 0) {
        EXPECT_TRUE(bytes[i].never_over(most)) << i;
      }
      if (share.operations > 0) {
        EXPECT_TRUE(operations[i].never_over(share.burst_operations)) << i;
      }
    }
    worst = std::max(worst, drift.worst() / (server.depth + 1));
    ASSERT_LE(drift.worst(), server.depth + 1);
    if (HasFailure()) return;
  }
  std::cout << "seeds 1 to 500: worst drift " << worst << " of the bound\n";
  EXPECT_GE(worst, 0.3) << "workloads that come nowhere near the bound prove nothing";
}

// Nothing waits for time while a flow without a limit has requests. A flow whose limit is below its
// part by weight gets all that its limit allows.
TEST(SfqLimits, AFlowGetsItsLimitWhenItsWeightGivesMore) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Draw draw(seed);
    const std::uint64_t capacity = draw(100, 1000) * kMiB;
    const auto weight = static_cast<std::uint32_t>(draw(1, 10));
    const std::uint64_t rate = capacity * weight / (weight + 10) * draw(10, 80) / 100;
    FlowWork limited = {.share = {.weight = weight, .rate = {rate}}, .outstanding = 64};
    FlowWork free = {.share = {.weight = 10}, .outstanding = 64};
    const auto scheduler = make_scheduler("sfq", {.depth = {.requests = 4}}).value();
    FlowSimulation simulation(*scheduler, {.cost_per_second = capacity}, {limited, free}, seed);
    simulation.run(250ms);
    EXPECT_EQ(simulation.waits(), 0U);
    const double seconds = 0.25;
    EXPECT_NEAR(static_cast<double>(simulation.sent_bytes(0)), static_cast<double>(rate) * seconds,
                3.2 * kMiB);
    EXPECT_NEAR(static_cast<double>(simulation.done(0) + simulation.done(1)),
                static_cast<double>(capacity) * seconds, 5 * 64 * kKiB);
  }
}

// Minimums m that fit the server (C) together. A request whose turn has come waits for at most the
// D requests before it and one of every other minimum, so over every interval of a backlog
//   sent >= m t - m / C (D largest requests + one of each flow with a minimum) - 3 requests.
TEST(SfqMinimum, IsKeptOverEveryIntervalOfABacklogWhileTheMinimumsFit) {
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Draw draw(seed);
    const RandomServer server = random_server(draw);
    const std::uint64_t capacity = server.settings.cost_per_second;
    std::vector<FlowWork> flows(draw(2, 6));
    std::uint64_t left = capacity * draw(30, 99) / 100;
    std::uint64_t largest = 0;
    std::uint64_t sum = 0;
    std::vector<RateWatch> watches;
    for (FlowWork& work : flows) {
      work = random_weighted_work(draw);
      largest = std::max(largest, work.most_size);
      if (left > kMiB && !draw.one_in(3)) {
        work.share.min = {draw(kMiB, left)};
        left -= work.share.min.count;
        sum += work.most_size;
      }
      watches.emplace_back(work.share.min.count);
    }
    const auto scheduler = make_scheduler("sfq", {.depth = {.requests = server.depth}}).value();
    FlowSimulation simulation(*scheduler, server.settings, flows, seed);
    simulation.on_backlog = [&](std::uint32_t flow, bool backlogged) {
      RateWatch& watch = watches[flow];
      backlogged ? watch.begin_backlog(simulation.now()) : watch.end_backlog(simulation.now());
    };
    simulation.on_sent = [&](const IoRequest& request) {
      watches[std::to_underlying(request.app)].served(request.size.count, simulation.now());
    };
    run_requests(simulation, flows.size(), 500);
    for (std::uint32_t i = 0; i < flows.size(); ++i) {
      const double min = static_cast<double>(flows[i].share.min.count);
      if (min == 0) continue;
      watches[i].end_backlog(simulation.now());
      const double slack =
          min / static_cast<double>(capacity) * static_cast<double>(server.depth * largest + sum) +
          3 * static_cast<double>(flows[i].most_size);
      worst = std::max(worst, watches[i].most_missing() / slack);
      ASSERT_LE(watches[i].most_missing(), slack) << "flow " << i;
    }
  }
  std::cout << "seeds 1 to 500: at most " << worst << " of the slack was missing\n";
  EXPECT_GE(worst, 0.3) << "workloads that come nowhere near the bound prove nothing";
}

// With all flows backlogged a flow gets at each time the larger of its minimum and its part by
// weight, as measured by a flow without a minimum:
//   M := max(M + m dt, w V),  V = W_g / w_g;   w V - 2 w c_g / w_g <= W <= M + 3 c + w c_g / w_g.
TEST(SfqMinimum, AFlowGetsTheLargerOfItsMinimumAndItsShareAndNoMore) {
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Draw draw(seed);
    const RandomServer server = random_server(draw);
    const std::uint64_t capacity = server.settings.cost_per_second;
    std::vector<FlowWork> flows(draw(2, 5));
    for (FlowWork& work : flows) {
      work = random_weighted_work(draw);
      work.share.weight = static_cast<std::uint32_t>(draw(1, 10));
      work.outstanding = 100;
      work.first = work.pause = Duration::zero();
      if (&work != &flows[0]) work.share.min = {capacity * draw(5, 95) / 100 / flows.size()};
    }
    const auto scheduler = make_scheduler("sfq", {.depth = {.requests = server.depth}}).value();
    FlowSimulation simulation(*scheduler, server.settings, flows, seed);
    const double reference = static_cast<double>(flows[0].most_size) / flows[0].share.weight;
    std::vector<double> most(flows.size(), 0);
    TimePoint before = {};
    simulation.on_sent = [&](const IoRequest&) {
      if (HasFatalFailure()) return;
      const double seconds = std::chrono::duration<double>(simulation.now() - before).count();
      before = simulation.now();
      const double given = static_cast<double>(simulation.sent_bytes(0)) / flows[0].share.weight;
      for (std::uint32_t i = 1; i < flows.size(); ++i) {
        const double sent = static_cast<double>(simulation.sent_bytes(i));
        const double weight = flows[i].share.weight;
        most[i] = std::max(most[i] + static_cast<double>(flows[i].share.min.count) * seconds,
                           weight * given);
        const double slack = 3 * static_cast<double>(flows[i].most_size) + weight * reference;
        worst = std::max(worst, (sent - most[i]) / slack);
        ASSERT_LE(sent, most[i] + slack) << "flow " << i;
        ASSERT_GE(sent, weight * (given - 2 * reference) - 1) << "flow " << i;
      }
    };
    run_requests(simulation, flows.size(), 1000);
    if (HasFatalFailure()) return;
  }
  std::cout << "seeds 1 to 250: at most " << worst << " of the slack above\n";
}

TEST(SfqMinimum, IsThereAtOnceAfterAnHourFarAboveIt) {
  for (const std::uint64_t size : {kMiB, 4 * kMiB}) {
    FlowWork old = {.share = {.weight = 1, .min = {50 * kMiB}}, .outstanding = 16};
    old.least_size = old.most_size = size * 4;
    FlowWork late = {.share = {.weight = 1000}, .outstanding = 64, .first = 1h};
    late.least_size = late.most_size = size;
    const auto scheduler = make_scheduler("sfq", {.depth = {.requests = 4}}).value();
    FlowSimulation simulation(*scheduler, {.cost_per_second = 100 * kMiB}, {old, late}, 1);
    simulation.run(1h - 1ms);
    RateWatch watch(50 * kMiB, simulation.now());
    watch.begin_backlog(simulation.now());
    simulation.on_sent = [&](const IoRequest& request) {
      if (request.app == AppId{0}) watch.served(request.size.count, simulation.now());
    };
    simulation.run(10s);
    watch.end_backlog(simulation.now());
    const double slack =
        0.5 * static_cast<double>(5 * 4 * size) + 3.0 * static_cast<double>(4 * size);
    EXPECT_LE(watch.most_missing(), slack);
  }
}

TEST(SfqMinimum, DoesNotHoldAgainstALimit) {
  FlowWork work = {.share = {.rate = {10 * kMiB}, .burst = {64 * kKiB}, .min = {50 * kMiB}}};
  const auto scheduler = make_scheduler("sfq", {}).value();
  FlowSimulation simulation(*scheduler, {.cost_per_second = 100 * kMiB}, {work, FlowWork{}}, 1);
  simulation.run(2s);
  EXPECT_NEAR(static_cast<double>(simulation.sent_bytes(0)), 20.0 * kMiB, 64.0 * kKiB);
}

// Small requests between large ones that block the server for far longer than they take.
TEST(SfqMinimum, SmallRequestsCatchUpWithWhatLargeOnesBlocked) {
  FlowWork small = {.share = {.weight = 1, .min = {50 * kMiB}}, .outstanding = 8};
  small.least_size = small.most_size = 4 * kKiB;
  FlowWork large = {.share = {.weight = 1000}, .outstanding = 8};
  large.least_size = large.most_size = 4 * kMiB;
  const auto scheduler = make_scheduler("sfq", {.depth = {.requests = 1}}).value();
  FlowSimulation simulation(*scheduler, {.cost_per_second = 100 * kMiB}, {small, large}, 1);
  simulation.run(10s);
  EXPECT_GE(simulation.sent_bytes(0), 500 * kMiB - 3 * kMiB);
  EXPECT_LE(simulation.sent_bytes(0), 500 * kMiB + 3 * kMiB);
}

// Only SFQ(D) holds after the last limit and minimum are removed: no flow is owed what a limit
// withheld, nor pays for long for what a minimum gave.
TEST(SfqLimits, RemovedWhileBackloggedTheyLeaveNothingBehind) {
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Draw draw(seed);
    RandomServer server = random_server(draw);
    server.settings.per_request = 100us;
    std::vector<FlowWork> flows(draw(2, 6));
    std::vector<std::uint32_t> weights;
    for (FlowWork& work : flows) {
      work = random_weighted_work(draw);
      weights.push_back(work.share.weight);
      if (draw.one_in(2)) work.share.rate = {draw(1, 40) * kMiB / 4};
      if (draw.one_in(3)) work.share.operations = draw(1, 200);
      if (draw.one_in(3)) work.share.min = {draw(1, 100) * kMiB};
    }
    const auto scheduler = make_scheduler("sfq", {.depth = {.requests = server.depth}}).value();
    FlowSimulation simulation(*scheduler, server.settings, flows, seed);
    DriftWatch drift(weights);
    bool watched = false;
    simulation.on_enqueue = [&](const IoRequest& request) {
      drift.charged(std::to_underlying(request.app), request.cost);
    };
    simulation.on_backlog = [&](std::uint32_t flow, bool backlogged) {
      if (watched) drift.backlog(flow, backlogged);
    };
    simulation.on_done = [&](const IoRequest& request, Cost cost) {
      drift.done(std::to_underlying(request.app), cost);
    };
    for (std::uint64_t i = draw(0, 5); i > 0; --i) {
      const auto flow = static_cast<std::uint32_t>(draw(0, flows.size() - 1));
      Share share = flows[flow].share;
      share.rate = {draw(0, 1) * draw(1, 20) * kMiB};
      share.operations = draw(0, 1) * draw(1, 500);
      share.min = {draw(0, 1) * draw(1, 100) * kMiB};
      simulation.at(TimePoint{} + std::chrono::milliseconds(draw(0, 100)), [&, flow, share] {
        EXPECT_TRUE(scheduler->set_share(AppId{flow}, share, simulation.now()).has_value());
      });
    }
    simulation.at(TimePoint{} + 100ms, [&] {
      watched = true;
      for (std::uint32_t i = 0; i < flows.size(); ++i) {
        const Share share = {.weight = weights[i]};
        EXPECT_TRUE(scheduler->set_share(AppId{i}, share, simulation.now()).has_value());
        drift.backlog(i, simulation.queued(i) > 0);
      }
    });
    simulation.run(100ms);
    simulation.run(std::chrono::milliseconds(30));
    worst = std::max(worst, drift.worst() / (server.depth + 1));
    ASSERT_LE(drift.worst(), server.depth + 1);
  }
  std::cout << "seeds 1 to 300: worst drift " << worst << " of the bound\n";
}

}  // namespace
}  // namespace vpfs
