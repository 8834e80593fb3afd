// What a coordinator's limits guarantee, and what they leave alone, under random use.
#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/registry.h"
#include "test/schedulers/allocated.h"
#include "test/support/rate_watch.h"
#include "test/support/simulation/flow_simulation.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

class AllocatedBounds : public ::testing::TestWithParam<const PolicyKind*> {};
INSTANTIATE_TEST_SUITE_P(EveryPolicy, AllocatedBounds, ::testing::ValuesIn(policies_with_caps()),
                         [](const auto& policy) { return std::string(policy.param->name); });

// No rate however small, no depth of the queues, no number of lanes and classes keeps a request
// for longer than half of the hold time. The lanes are asked in one order, and only when time has
// come or a request was added.
TEST_P(AllocatedBounds, EveryRequestLeavesInTheFirstHalfOfItsTime) {
  constexpr Duration kHold = 8s;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    SchedulerSettings settings = {.depth = {.requests = 100'000}};
    settings.classes = {.mode = TrafficClasses::Mode{static_cast<std::uint8_t>(seed % 3)},
                        .classes = {{.name = "a"}, {.name = "b", .share = 3}}};
    RateLimits limits;
    std::vector<std::unique_ptr<Scheduler>> lanes;
    constexpr std::uint32_t kFlows = 4;
    TimePoint now = TimePoint{} + 1h;
    for (std::size_t i = 0; i <= seed % 4; ++i) {
      lanes.push_back(make_scheduler(*GetParam(), settings, &limits));
      lanes.back()->set_hold(kHold, now);
      for (std::uint32_t flow = 0; flow < kFlows; ++flow) {
        const Share share = {.weight = 1 + flow,
                             .rate = {flow == 3 ? std::uint64_t{kGiB} : 0},
                             .burst = {100 * kGiB}};
        ASSERT_TRUE(lanes.back()->set_share(AppId{flow}, share, now).has_value());
      }
    }
    const auto allocate = [&](std::uint32_t flow) {
      const std::uint64_t rate = std::uint64_t{1} << random() % 24;
      Limits cap;
      if (random() % 4 != 0) cap.bytes = BytesPerSecond{random() % 3 == 0 ? 0 : rate};
      if (random() % 2 == 0) cap.operations = random() % 3;
      if (random() % 2 == 0) cap.metadata_operations = random() % 3;
      for (const auto& lane : lanes) ASSERT_TRUE(lane->set_limits(AppId{flow}, cap, now));
    };
    for (std::uint32_t flow = 0; flow < kFlows; ++flow) allocate(flow);
    std::deque<IoRequest> requests;
    std::vector<IoRequest*> taken_back;
    std::uint64_t passed = 0;
    Duration longest = {};
    const TimePoint last_arrival = now + 20s;
    for (;;) {
      TimePoint next = kNever;
      for (const auto& lane : lanes) {
        for (;;) {
          const Scheduler::Decision decision = lane->next(now);
          if (decision.request == nullptr) {
            next = std::min(next, decision.until);
            break;
          }
          passed += decision.request->passed_limit ? 1 : 0;
          longest = std::max(longest, now - decision.request->arrival);
          lane->complete(*decision.request, decision.request->cost, now);
        }
      }
      if (now >= last_arrival) {
        if (next == kNever) break;
        now = next;
        continue;
      }
      const TimePoint event = now + Duration(static_cast<std::int64_t>(random() % 40'000'000));
      if (next <= event) {
        now = next;
        continue;
      }
      now = event;
      const auto lane = static_cast<std::size_t>(random() % lanes.size());
      const auto flow = static_cast<std::uint32_t>(random() % kFlows);
      for (std::uint64_t i = random() % 50; i > 0; --i) {
        const std::uint64_t size = std::uint64_t{1} << random() % 23;
        IoRequest& request = requests.emplace_back();
        request = {.app = AppId{flow},
                   .kind = random() % 4 == 0 ? IoKind::metadata : IoKind::write,
                   .traffic_class = static_cast<std::uint8_t>(random() % 2),
                   .size = {size},
                   .cost = size,
                   .arrival = now};
        lanes[lane]->enqueue(request, now);
        // Some are held back elsewhere for a while.
        if (random() % 50 != 0) continue;
        lanes[lane]->withdraw(request, now);
        taken_back.push_back(&request);
      }
      if (random() % 20 == 0) {
        for (IoRequest* request : taken_back) {
          if (now - request->arrival < kHold / 2) lanes[lane]->enqueue(*request, now);
        }
        taken_back.clear();
      }
      if (random() % 5 == 0) allocate(flow);
    }
    for (const auto& lane : lanes) ASSERT_EQ(lane->queued(), 0U);
    EXPECT_GT(passed, 100U);
    EXPECT_LE(longest, kHold / 2 + 10ns) << "each other lane may be given way once";
  }
}

// The bound of one bucket whose rate is the smaller of both at any time, for random changes of the
// coordinator's limit. Requests that pass by their age count apart; here none does.
TEST_P(AllocatedBounds, NoIntervalGetsMoreThanABurstAndTheIntegralOfTheSmallerRate) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const bool configured = seed % 2 == 0;
    const std::uint64_t rate = configured ? 20 * kMiB : std::uint64_t{1} << 40;
    // Without a rate of the share's the burst is a tenth of a second's worth, at most this.
    const std::uint64_t burst = configured ? 2 * kMiB : 5 * kMiB;
    SchedulerSettings settings = {.depth = {.requests = 32}};
    settings.classes = {.mode = TrafficClasses::Mode{static_cast<std::uint8_t>(seed % 3)},
                        .classes = {{.name = "a"}, {.name = "b", .share = 3}}};
    const auto scheduler = make_scheduler(*GetParam(), settings);
    FlowWork limited = {.outstanding = 32, .least_size = 1, .most_size = kMiB, .classes = {0, 1}};
    if (configured) limited.share = {.rate = {rate}, .burst = {burst}};
    if (seed % 5 == 0) limited.active = 100ms, limited.pause = 300ms;
    FlowSimulation simulation(*scheduler, {.cost_per_second = 60 * kMiB},
                              {limited, {.least_size = 512 * kKiB, .most_size = 512 * kKiB}}, seed);
    scheduler->set_hold(24h, {});
    std::uint64_t cap = 10 * kMiB;
    RateWatch watch(std::min(rate, cap));
    ASSERT_TRUE(scheduler->set_limits(kFlow, bytes(cap), {}));
    std::uint64_t sent = 0;
    simulation.on_sent = [&](const IoRequest& request) {
      if (request.app != kFlow) return;
      ASSERT_FALSE(request.passed_limit);
      sent += request.size.count;
      watch.served(request.size.count, simulation.now());
    };
    double allowed = 0;
    for (TimePoint at = {}; at < TimePoint{} + 5s;) {
      const Duration step(static_cast<std::int64_t>(1 + random() % 50'000'000));
      simulation.run(step);
      allowed += static_cast<double>(std::min(rate, cap)) * static_cast<double>(step.count()) / 1e9;
      at += step;
      cap = random() % 6 == 0 ? 0 : random() % (50 * kMiB);
      if (configured && random() % 4 == 0) {
        ASSERT_TRUE(scheduler->set_share(kFlow, limited.share, at).has_value());
      }
      ASSERT_TRUE(scheduler->set_limits(kFlow, bytes(cap), at));
      watch.change_rate(std::min(rate, cap), at);
    }
    EXPECT_TRUE(watch.never_over(burst)) << watch.most_over();
    // It loses no more than a larger burst would have kept.
    if (limited.pause == Duration::zero() && !configured) {
      EXPECT_GE(static_cast<double>(sent), 0.85 * allowed - static_cast<double>(burst));
    }
  }
}

// Two schedulers with the same work. One is given limits that never hold anything, over and over.
// (With traffic classes it would notice earlier when one class took the tokens of another.)
TEST_P(AllocatedBounds, LimitsAboveWhatAFlowDoesChangeNothing) {
  struct Sent {
    TimePoint at;
    AppId app;
    std::uint64_t size;
    bool operator==(const Sent&) const = default;
  };
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    SchedulerSettings settings = {.depth = {.requests = 8}};
    std::vector<FlowWork> flows(5);
    for (FlowWork& flow : flows) {
      flow = {.least_size = 4 * kKiB, .most_size = kMiB, .short_percent = 20};
      flow.share.weight = static_cast<std::uint32_t>(1 + random() % 9);
      if (random() % 2 == 0) flow.share.rate = {kMiB + random() % (100 * kMiB)};
      if (random() % 3 == 0) flow.share.operations = 10 + random() % 500;
      if (random() % 3 == 0) flow.share.min = {random() % (50 * kMiB)};
      flow.share.realtime = random() % 3 == 0;
      flow.share.rank = static_cast<std::uint8_t>(random() % 3);
      if (random() % 2 == 0) flow.active = 200ms, flow.pause = 100ms;
    }
    std::vector<Sent> sent[2];
    for (const bool allocates : {false, true}) {
      const auto scheduler = make_scheduler(*GetParam(), settings);
      FlowSimulation simulation(*scheduler, {.cost_per_second = 200 * kMiB}, flows, seed);
      scheduler->set_hold(24h, {});
      simulation.on_sent = [&](const IoRequest& request) {
        sent[allocates].push_back({simulation.now(), request.app, request.size.count});
      };
      for (int i = 0; i < 200; ++i) {
        const TimePoint now = simulation.now();
        scheduler->served_elsewhere(AppId{static_cast<std::uint32_t>(i % 5)}, kMiB, 10ms, now);
        if (allocates) {
          for (std::uint32_t flow = 0; flow < 5; ++flow) {
            Limits limits = {.bytes = BytesPerSecond{Share::kMaxRate}};
            limits.operations = Share::kMaxRate - static_cast<std::uint64_t>(i % 7);
            ASSERT_TRUE(scheduler->set_limits(AppId{flow}, i % 3 == 0 ? Limits{} : limits, now));
          }
        }
        simulation.run(10ms);
      }
    }
    EXPECT_GT(sent[0].size(), 200U);
    EXPECT_TRUE(sent[0] == sent[1]);
  }
}

}  // namespace
}  // namespace vpfs
