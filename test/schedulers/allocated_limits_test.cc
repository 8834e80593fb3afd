// A coordinator's limits, for every policy that can enforce them.
#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/registry.h"
#include "test/support/allocation_count.h"
#include "test/support/flow_simulation.h"
#include "test/support/rate_watch.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

constexpr AppId kFlow{0};
constexpr SchedulerSettings kWide = {.depth = {.requests = 100'000}};

Limits bytes(std::uint64_t rate) {
  return {.bytes = BytesPerSecond{rate}};
}
Limits operations(std::uint64_t rate) {
  return {.operations = rate};
}

std::vector<const PolicyKind*> policies_with_caps() {
  std::vector<const PolicyKind*> found;
  for (const PolicyKind* each : known_policies()) {
    if (each->caps) found.push_back(each);
  }
  return found;
}

// Requests of one flow, sent by hand to schedulers on the same limits.
class AllocatedLimits : public ::testing::TestWithParam<const PolicyKind*> {
 protected:
  void make(std::size_t lanes = 1, const SchedulerSettings& settings = kWide,
            const Share& share = {}) {
    for (std::size_t i = 0; i < lanes; ++i) {
      lanes_.push_back(make_scheduler(*GetParam(), settings, &limits_));
      ASSERT_TRUE(lanes_.back()->set_share(kFlow, share, now_).has_value());
    }
  }
  void allocate(const Limits& limits) {
    for (const auto& lane : lanes_) ASSERT_TRUE(lane->set_limits(kFlow, limits, now_));
  }
  void set_hold(Duration hold) {
    for (const auto& lane : lanes_) lane->set_hold(hold, now_);
  }
  IoRequest& add(std::uint64_t size, std::size_t lane = 0) {
    IoRequest& request = requests_.emplace_back();
    request = {.size = {size}, .cost = std::max<Cost>(size, 1), .arrival = now_};
    lanes_[lane]->enqueue(request, now_);
    return request;
  }
  // Sends what may go now and completes it at once. Returns how many bytes.
  std::uint64_t send(std::size_t lane = 0) {
    std::uint64_t sent = 0;
    for (;;) {
      const Scheduler::Decision decision = lanes_[lane]->next(now_);
      if (decision.request == nullptr) {
        until_ = decision.until;
        return sent;
      }
      sent += decision.request->size.count;
      passed_ += decision.request->passed_limit ? 1 : 0;
      lanes_[lane]->complete(*decision.request, decision.request->cost, now_);
    }
  }
  Scheduler& scheduler() { return *lanes_.front(); }

  TimePoint now_ = TimePoint{} + 1h;
  TimePoint until_ = kNever;
  RateLimits limits_;
  std::vector<std::unique_ptr<Scheduler>> lanes_;
  std::deque<IoRequest> requests_;
  std::size_t passed_ = 0;
};

INSTANTIATE_TEST_SUITE_P(EveryPolicy, AllocatedLimits, ::testing::ValuesIn(policies_with_caps()),
                         [](const auto& policy) { return std::string(policy.param->name); });

TEST_P(AllocatedLimits, AFlowGetsItsAllocatedRateAndTheReasonNamesTheCoordinator) {
  make();
  set_hold(1h);
  allocate(bytes(10 * kMiB));
  for (int i = 0; i < 400; ++i) (void)add(64 * kKiB);
  EXPECT_EQ(send(), kMiB);  // a tenth of a second's worth
  const WaitReason why = scheduler().why_waiting(kFlow, now_);
  EXPECT_EQ(why.reason, "the coordinator's limit");
  EXPECT_EQ(why.eligible, until_);
  now_ += 1s;
  EXPECT_EQ(send(), kMiB) << "a burst and no more after a pause";
  std::uint64_t sent = 0;
  for (int i = 0; i < 1000; ++i) {
    now_ += 1ms;
    sent += send();
  }
  EXPECT_NEAR(static_cast<double>(sent), 10.0 * kMiB, 64.0 * kKiB);
  EXPECT_EQ(passed_, 0U);
  EXPECT_GT(scheduler().held(kFlow, now_).limit, 900ms);
}

TEST_P(AllocatedLimits, OperationsAreLimitedToo) {
  make();
  set_hold(1h);
  allocate(operations(50));
  for (int i = 0; i < 100; ++i) (void)add(0);
  (void)send();
  EXPECT_EQ(scheduler().queued(), 95U);
  EXPECT_EQ(until_, now_ + 20ms);
  now_ = until_;
  (void)send();
  EXPECT_EQ(scheduler().queued(), 94U);
}

TEST_P(AllocatedLimits, TheStricterOfBothLimitsHolds) {
  make(1, kWide, {.rate = {2 * kMiB}, .burst = {kMiB}});
  set_hold(1h);
  for (int i = 0; i < 400; ++i) (void)add(kMiB / 8);
  EXPECT_EQ(send(), kMiB);
  allocate(bytes(4 * kMiB));
  now_ += 500ms;
  EXPECT_EQ(send(), kMiB);
  EXPECT_NE(scheduler().why_waiting(kFlow, now_).reason, "the coordinator's limit");
  allocate(bytes(kMiB));
  now_ += 500ms;
  EXPECT_EQ(send(), kMiB / 2);
  EXPECT_EQ(scheduler().why_waiting(kFlow, now_).reason, "the coordinator's limit");
  allocate({});
  now_ += 250ms;
  EXPECT_EQ(send(), kMiB) << "the share's bucket filled meanwhile";
}

// The first limit begins with a full bucket; later ones have what is left.
TEST_P(AllocatedLimits, NoChangeGivesABurst) {
  make();
  set_hold(24h);
  for (int i = 0; i < 100'000; ++i) (void)add(4 * kKiB);
  allocate(bytes(100 * kMiB));
  EXPECT_EQ(send(), 10 * kMiB);
  for (const std::uint64_t rate : {kMiB, 100 * kMiB, std::uint64_t{0}, 10 * kMiB, kMiB}) {
    allocate(bytes(rate));
    EXPECT_EQ(send(), 0U) << rate;
  }
  // A full bucket that becomes smaller and larger again keeps the smaller amount.
  allocate(bytes(100 * kMiB));
  now_ += 200ms;
  allocate(bytes(kMiB));
  allocate(bytes(100 * kMiB));
  EXPECT_LE(send(), 108 * kKiB);
}

TEST_P(AllocatedLimits, ALiftedLimitIsNotRefilledByBeingSetAgain) {
  make();
  set_hold(24h);
  for (int i = 0; i < 1000; ++i) (void)add(64 * kKiB);
  allocate(bytes(kMiB));
  EXPECT_EQ(send(), 64 * kKiB);
  for (int i = 0; i < 100; ++i) {
    allocate({});
    allocate(bytes(kMiB));
    EXPECT_EQ(send(), 0U);
  }
  now_ += 100ms;
  EXPECT_EQ(send(), 64 * kKiB);
}

TEST_P(AllocatedLimits, ADebtIsKeptWhenTheRateChangesAndPaidAtTheNewOne) {
  make();
  set_hold(24h);
  allocate(bytes(kMiB));
  (void)add(16 * kMiB);
  (void)add(64 * kKiB);
  EXPECT_EQ(send(), 16 * kMiB);
  const std::uint64_t burst = kMiB / 10;
  const auto paid = [&](std::uint64_t rate) {
    const double missing = static_cast<double>(16 * kMiB + 64 * kKiB - burst);
    return now_ + Duration(static_cast<std::int64_t>(1e9 * missing / static_cast<double>(rate)));
  };
  EXPECT_LT(std::chrono::abs(until_ - paid(kMiB)), 1us);
  allocate(bytes(16 * kMiB));
  EXPECT_EQ(send(), 0U);
  EXPECT_LT(std::chrono::abs(until_ - paid(16 * kMiB)), 1us);
}

TEST_P(AllocatedLimits, AHeadThatIsOlderThanHalfOfTheHoldTimePassesAndTheRestWithIt) {
  for (const Limits& limits : {bytes(0), bytes(1), operations(0), operations(1)}) {
    lanes_.clear();
    passed_ = 0;
    make();
    set_hold(60s);
    // The first one uses up the burst.
    scheduler().set_hold(60s, now_);
    allocate(limits);
    (void)add(64 * kKiB);
    (void)send();
    for (int i = 0; i < 100; ++i) {
      (void)add(64 * kKiB);
      now_ += 1ms;
    }
    const TimePoint first = now_ - 100ms + 30s;
    now_ = first - 1ns;
    if (limits.operations != 1) {
      EXPECT_EQ(send(), 0U);
      EXPECT_EQ(until_, first);
    }
    now_ = first;
    (void)send();
    EXPECT_GE(passed_, 1U);
    now_ += 100ms;
    (void)send();
    EXPECT_EQ(scheduler().queued(), 0U);
    EXPECT_GE(passed_, limits.operations == 1 ? 60U : 100U);
  }
}

TEST_P(AllocatedLimits, TheLimitOfTheShareLetsNothingPass) {
  make(1, kWide, {.rate = {kMiB}, .burst = {kMiB}});
  set_hold(1s);
  allocate(bytes(0));
  for (int i = 0; i < 10; ++i) (void)add(kMiB);
  now_ += 500ms;
  EXPECT_EQ(send(), kMiB);
  EXPECT_EQ(until_, now_ + 1s);
  EXPECT_EQ(scheduler().why_waiting(kFlow, now_).eligible, now_ + 1s);
  EXPECT_EQ(passed_, 1U);
}

TEST_P(AllocatedLimits, AShorterHoldTimeLetsWaitingHeadsPassEarlier) {
  make();
  set_hold(1h);
  allocate(bytes(0));
  (void)add(kMiB);
  EXPECT_EQ(send(), 0U);
  EXPECT_EQ(until_, now_ + 30min);
  set_hold(10s);
  EXPECT_EQ(send(), 0U);
  EXPECT_EQ(until_, now_ + 5s);
}

TEST_P(AllocatedLimits, WhatPassesLeavesNoDebt) {
  make();
  set_hold(2s);
  allocate(bytes(kMiB));
  for (int i = 0; i < 500; ++i) (void)add(64 * kKiB);
  now_ += 1s;
  EXPECT_EQ(send(), 500 * 64 * kKiB);
  EXPECT_EQ(passed_, 499U);
  (void)add(64 * kKiB);
  EXPECT_EQ(send(), 0U) << "the tokens that were there are gone";
  EXPECT_LE(until_, now_ + 100ms);
}

// A client that took no data for a while: its request comes again behind younger ones.
TEST_P(AllocatedLimits, AnOldRequestBehindYoungerOnesLeavesInItsOwnTime) {
  make();
  set_hold(10s);
  allocate(bytes(0));
  IoRequest& old = add(kMiB);
  const TimePoint limit = now_ + 5s;
  scheduler().withdraw(old, now_);
  now_ += 4s;
  for (int i = 0; i < 10; ++i) (void)add(kMiB);
  EXPECT_EQ(send(), 0U);
  EXPECT_EQ(until_, now_ + 5s);
  scheduler().enqueue(old, now_);
  IoRequest& younger = add(kMiB);
  EXPECT_EQ(send(), 0U);
  EXPECT_EQ(until_, limit);
  now_ = limit;
  EXPECT_EQ(send(), 11 * kMiB);
  EXPECT_TRUE(younger.queued) << "it came after the old one and waits for its own time";
  EXPECT_EQ(until_, younger.arrival + 5s);
}

// No rate however small, no depth of the queues, no number of lanes and classes keeps a request
// for longer than half of the hold time. The lanes are asked in one order, and only when time has
// come or a request was added.
TEST_P(AllocatedLimits, EveryRequestLeavesInTheFirstHalfOfItsTime) {
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
TEST_P(AllocatedLimits, NoIntervalGetsMoreThanABurstAndTheIntegralOfTheSmallerRate) {
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
TEST_P(AllocatedLimits, LimitsAboveWhatAFlowDoesChangeNothing) {
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

TEST_P(AllocatedLimits, LanesTakeTurnsHoweverOftenTheLimitChanges) {
  make(4);
  set_hold(1h);
  std::vector<std::uint64_t> sent(4);
  for (int i = 0; i < 4000; ++i) {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      while (scheduler().flow(kFlow).queued < 0 || lanes_[lane]->queued() < 4) {
        (void)add(64 * kKiB, lane);
      }
    }
    if (i % 10 == 0) allocate(bytes(kMiB + static_cast<std::uint64_t>(i % 20) * kKiB));
    for (int round = 0; round < 3; ++round) {
      for (std::size_t lane = 0; lane < 4; ++lane) sent[lane] += send(lane);
      now_ += 1ns;
    }
    now_ += 5ms;
  }
  const std::uint64_t sum = sent[0] + sent[1] + sent[2] + sent[3];
  EXPECT_NEAR(static_cast<double>(sum), 20.0 * kMiB, 0.1 * 20 * kMiB);
  for (const std::uint64_t each : sent) {
    EXPECT_NEAR(static_cast<double>(each), static_cast<double>(sum) / 4.0,
                0.1 * static_cast<double>(sum));
  }
}

TEST_P(AllocatedLimits, TheNextFlowOfANumberBeginsWithoutThem) {
  make();
  set_hold(1h);
  allocate(bytes(kMiB));
  (void)add(16 * kMiB);
  EXPECT_EQ(send(), 16 * kMiB);
  scheduler().remove(kFlow, now_);
  ASSERT_TRUE(scheduler().set_share(kFlow, {}, now_).has_value());
  (void)add(16 * kMiB);
  EXPECT_EQ(send(), 16 * kMiB);
  allocate(bytes(kMiB));
  (void)add(64 * kKiB);
  EXPECT_EQ(send(), 64 * kKiB) << "no debt either";
}

TEST_P(AllocatedLimits, WhatWasChargedMoreIsADebt) {
  make();
  set_hold(1h);
  allocate(bytes(kMiB));
  IoRequest& request = add(64 * kKiB);
  ASSERT_EQ(scheduler().next(now_).request, &request);
  scheduler().charge_more(request, {.cost = kMiB, .size = {kMiB}}, now_);
  scheduler().complete(request, request.cost, now_);
  (void)add(64 * kKiB);
  EXPECT_EQ(send(), 0U);
  EXPECT_GT(until_, now_ + 900ms);
}

TEST_P(AllocatedLimits, ChangingThemAllocatesNothingOnceEveryFlowHasHadOne) {
  constexpr std::uint32_t kFlows = 1000;
  const auto scheduler = make_scheduler(*GetParam(), kWide);
  const auto allocate_all = [&](std::uint64_t rate) {
    for (std::uint32_t flow = 0; flow < kFlows; ++flow) {
      ASSERT_TRUE(scheduler->set_limits(AppId{flow}, bytes(rate + flow), now_));
    }
  };
  for (std::uint32_t flow = 0; flow < kFlows; ++flow) {
    ASSERT_TRUE(scheduler->set_share(AppId{flow}, {}, now_).has_value());
  }
  allocate_all(1);
  const std::uint64_t before = allocation_count();
  allocate_all(kMiB);
  scheduler->set_hold(1min, now_);
  for (std::uint32_t flow = 0; flow < kFlows; ++flow) {
    ASSERT_TRUE(scheduler->set_limits(AppId{flow}, {}, now_));
  }
  EXPECT_EQ(allocation_count(), before);
}

// A limit of the coordinator's gives no precedence over flows without one.
TEST(AllocatedLimitsOfTbf, AFlowWithoutALimitOfItsOwnStaysInTheOrderOfArrival) {
  const auto tbf = make_scheduler("tbf", {.depth = {.requests = 1}}).value();
  for (std::uint32_t flow = 0; flow < 2; ++flow) {
    ASSERT_TRUE(tbf->set_share(AppId{flow}, {}, {}).has_value());
  }
  ASSERT_TRUE(tbf->set_limits(AppId{1}, bytes(100 * kMiB), {}));
  std::vector<IoRequest> requests(4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    requests[i] = {.app = AppId{i % 2}, .size = {kKiB}, .cost = kKiB};
    tbf->enqueue(requests[i], {});
  }
  for (IoRequest& each : requests) {
    ASSERT_EQ(tbf->next({}).request, &each);
    tbf->complete(each, each.cost, {});
  }
}

}  // namespace
}  // namespace vpfs
