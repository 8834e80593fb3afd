// Limits that several schedulers share: one for each target of a data server.
#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/registry.h"
#include "sim/device/device.h"
#include "sim/engine/engine.h"
#include "test/support/rate_watch.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kRate = 20 * kMiB;
constexpr Bytes kBurst = {2 * kMiB};
constexpr std::uint64_t kLaneSpeed = 200 * kMiB;

struct LaneWork {
  std::uint32_t outstanding = 8;  // requests that each flow keeps in flight here
  Duration first = Duration::zero();
  std::uint64_t speed = kLaneSpeed;
};

// Schedulers on the same limits, each with its own target, always asked in the same order. Flow 0
// is limited; flow 1, if any, is not.
class Lanes {
 public:
  Lanes(std::string_view policy, const SchedulerSettings& settings,
        const std::vector<LaneWork>& works, const Share& share, std::uint32_t flows = 1)
      : watch_(share.rate.count > 0 ? share.rate.count : share.operations) {
    by_bytes_ = share.rate.count > 0;
    for (const LaneWork& work : works) {
      Lane& lane = lanes_.emplace_back(work);
      lane.scheduler = make_scheduler(policy, settings, &limits_).value();
      lane.in_flight.resize(flows);
      lane.sent.resize(flows);
    }
    for (Lane& lane : lanes_) {
      (void)lane.scheduler->set_share(AppId{0}, share, engine_.now());
      for (std::uint32_t flow = 1; flow < flows; ++flow) {
        (void)lane.scheduler->set_share(AppId{flow}, {}, engine_.now());
      }
    }
  }

  void run(Duration length) {
    const TimePoint end = engine_.now() + length;
    for (;;) {
      TimePoint next = end;
      for (Lane& lane : lanes_) {
        refill(lane);
        next = std::min(next, send(lane));
        if (TimePoint{} + lane.work.first > engine_.now()) {
          next = std::min(next, TimePoint{} + lane.work.first);
        }
      }
      next = std::min(next, engine_.next());
      if (before_step) before_step(engine_.now());
      ASSERT_GT(next, engine_.now());
      engine_.skip_to(next);
      if (next == end) return;
      while (engine_.step(next)) {
      }
    }
  }
  // Gives its share to the flow again, in every lane.
  void set_share(const Share& share) {
    for (Lane& lane : lanes_) (void)lane.scheduler->set_share(AppId{0}, share, engine_.now());
  }
  void set_outstanding(std::size_t lane, std::uint32_t outstanding) {
    lanes_[lane].work.outstanding = outstanding;
  }
  [[nodiscard]] std::uint64_t sent(std::size_t lane, std::uint32_t flow = 0) const {
    return lanes_[lane].sent[flow];
  }
  [[nodiscard]] std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const Lane& lane : lanes_) sum += lane.sent[0];
    return sum;
  }
  [[nodiscard]] const RateWatch& watch() const { return watch_; }
  RateWatch& watch() { return watch_; }
  RateLimits& limits() { return limits_; }
  Scheduler& scheduler(std::size_t lane) { return *lanes_[lane].scheduler; }

  std::function<void(TimePoint)> before_step;

 private:
  struct Lane {
    explicit Lane(const LaneWork& from) : work(from), device({.cost_per_second = from.speed}) {}

    LaneWork work;
    std::unique_ptr<Scheduler> scheduler;
    sim::Device device;
    std::vector<std::uint32_t> in_flight;  // by flow
    std::vector<std::uint64_t> sent;       // bytes, or operations
  };

  void refill(Lane& lane) {
    if (engine_.now() < TimePoint{} + lane.work.first) return;
    for (std::uint32_t flow = 0; flow < lane.in_flight.size(); ++flow) {
      for (; lane.in_flight[flow] < lane.work.outstanding; ++lane.in_flight[flow]) {
        IoRequest& request = storage_.emplace_back();
        const std::uint64_t size = kMiB / 4 + random_() % (3 * kMiB / 4);
        request = {.app = AppId{flow},
                   .traffic_class = static_cast<std::uint8_t>(random_() % 2),
                   .size = {size},
                   .cost = size,
                   .arrival = engine_.now()};
        lane.scheduler->enqueue(request, engine_.now());
      }
    }
  }
  TimePoint send(Lane& lane) {
    for (;;) {
      const Scheduler::Decision decision = lane.scheduler->next(engine_.now());
      if (decision.request == nullptr) return decision.until;
      const auto flow = std::to_underlying(decision.request->app);
      const std::uint64_t amount = by_bytes_ ? decision.request->size.count : 1;
      lane.sent[flow] += amount;
      if (flow == 0) watch_.served(amount, engine_.now());
      engine_.at(lane.device.serve(decision.request->cost, engine_.now()),
                 [this, &lane, request = decision.request] { finish(lane, *request); });
    }
  }
  void finish(Lane& lane, const IoRequest& request) {
    lane.scheduler->complete(request, request.cost, engine_.now());
    --lane.in_flight[std::to_underlying(request.app)];
  }

  RateLimits limits_;
  bool by_bytes_ = true;
  std::deque<Lane> lanes_;
  std::deque<IoRequest> storage_;
  std::mt19937_64 random_{1};
  RateWatch watch_;
  sim::Engine engine_;
};

const Share kLimited = {.rate = {kRate}, .burst = kBurst};
const SchedulerSettings kSettings = {.depth = {.requests = 4}};

class SharedLimits : public ::testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(LimitedPolicies, SharedLimits, ::testing::Values("sfq", "tbf"),
                         [](const auto& name) { return std::string(name.param); });

TEST_P(SharedLimits, AFlowThatIsBackloggedInAllLanesGetsItsRateInAllOfThemTogether) {
  for (const std::size_t count : {2U, 4U}) {
    SCOPED_TRACE(count);
    Lanes lanes(GetParam(), kSettings, std::vector<LaneWork>(count), kLimited, 2);
    lanes.run(10s);
    EXPECT_TRUE(lanes.watch().never_over(kBurst.count));
    EXPECT_GE(lanes.total(), 10 * kRate - kMiB);
  }
}

// The lanes are always asked in one order. That order must not decide which lane goes first.
TEST_P(SharedLimits, TheLanesTakeTheTokensInTurn) {
  Lanes lanes(GetParam(), kSettings, std::vector<LaneWork>(4), kLimited);
  lanes.run(20s);
  for (std::size_t lane = 0; lane < 4; ++lane) {
    EXPECT_NEAR(static_cast<double>(lanes.sent(lane)), 5.0 * kRate, 0.15 * 5.0 * kRate) << lane;
  }
}

TEST_P(SharedLimits, WhatOneLaneLeavesTheOthersUse) {
  // The first target does a twentieth of the limit, and the second one begins later.
  Lanes lanes(GetParam(), kSettings, {{.speed = kRate / 20}, {.first = 4s}, {}}, kLimited);
  lanes.run(4s);
  EXPECT_GE(lanes.total(), 4 * kRate - 2 * kMiB);
  EXPECT_NEAR(static_cast<double>(lanes.sent(0)), 4 * kRate / 20.0, 5.0 * kMiB);
  lanes.run(4s);
  EXPECT_GE(lanes.total(), 8 * kRate - 2 * kMiB);
  EXPECT_GE(lanes.sent(1), kRate);
  EXPECT_TRUE(lanes.watch().never_over(kBurst.count));
  // A lane without requests delays no other.
  lanes.set_outstanding(1, 0);
  lanes.set_outstanding(0, 0);
  const std::uint64_t before = lanes.sent(2);
  lanes.run(4s);
  EXPECT_GE(lanes.sent(2) - before, 4 * kRate - 12 * kMiB);
}

TEST_P(SharedLimits, OperationsAreSharedToo) {
  Lanes lanes(GetParam(), kSettings, std::vector<LaneWork>(4),
              {.operations = 50, .burst_operations = 5});
  lanes.run(10s);
  EXPECT_TRUE(lanes.watch().never_over(5));
  EXPECT_GE(lanes.total(), 499U);
  for (std::size_t lane = 0; lane < 4; ++lane) EXPECT_GE(lanes.sent(lane), 120U);
}

TEST_P(SharedLimits, WithTrafficClassesInEachLaneTheLimitHoldsForAllOfThem) {
  for (const auto mode : {TrafficClasses::Mode::apportion, TrafficClasses::Mode::strict}) {
    SchedulerSettings settings = kSettings;
    settings.classes = {.mode = mode,
                        .classes = {{.name = "a", .share = 1}, {.name = "b", .share = 3}}};
    Lanes lanes(GetParam(), settings, std::vector<LaneWork>(3), kLimited, 2);
    lanes.run(10s);
    EXPECT_TRUE(lanes.watch().never_over(kBurst.count));
    EXPECT_GE(lanes.total(), 10 * kRate - kMiB);
    for (std::size_t lane = 0; lane < 3; ++lane) EXPECT_GE(lanes.sent(lane), kRate) << lane;
  }
}

// The flow is always backlogged, but not in one of the lanes. A new backlog there keeps the tokens
// that the servers were too slow for.
TEST_P(SharedLimits, RealtimeCountsFromWhenTheFlowHadNothingInAnyLane) {
  RateLimits limits;
  const auto one = make_scheduler(GetParam(), {.depth = {.requests = 1}}, &limits).value();
  const auto other = make_scheduler(GetParam(), {.depth = {.requests = 1}}, &limits).value();
  const Share share = {.rate = {kMiB}, .burst = {kMiB}, .realtime = true};
  for (Scheduler* each : {one.get(), other.get()}) {
    ASSERT_TRUE(each->set_share(AppId{0}, share, {}).has_value());
  }
  std::vector<IoRequest> requests(51);
  for (IoRequest& request : requests) request = {.size = {kMiB}, .cost = kMiB};
  for (std::size_t i = 0; i < 50; ++i) one->enqueue(requests[i], {});
  IoRequest* at_server = one->next({}).request;
  ASSERT_NE(at_server, nullptr);
  const TimePoint later = TimePoint{} + 9900ms;
  other->enqueue(requests[50], later);
  other->withdraw(requests[50], later);
  other->enqueue(requests[50], later);
  const TimePoint end = TimePoint{} + 10s;
  int sent = 0;
  for (; at_server != nullptr; ++sent) {
    one->complete(*at_server, kMiB, end);
    at_server = one->next(end).request;
  }
  EXPECT_EQ(sent, 11);  // the first one, and ten of the ten seconds
}

TEST_P(SharedLimits, AShareThatIsGivenAgainInEveryLaneChangesNothing) {
  Lanes lanes(GetParam(), kSettings, std::vector<LaneWork>(4), kLimited);
  lanes.before_step = [&](TimePoint) { lanes.set_share(kLimited); };
  lanes.run(5s);
  EXPECT_TRUE(lanes.watch().never_over(kBurst.count));
  EXPECT_GE(lanes.total(), 5 * kRate - kMiB);
  for (std::size_t lane = 0; lane < 4; ++lane) EXPECT_GE(lanes.sent(lane), kRate / 2) << lane;
}

// Both lanes have had their turn, and the refused request of one is withdrawn.
TEST_P(SharedLimits, ALimitThatIsRaisedAllowsAtOnceWhateverLanesWereRefusedBefore) {
  RateLimits limits;
  const Share slow = {.rate = {1000}, .burst = {4 * kMiB}};
  const auto one = make_scheduler(GetParam(), kSettings, &limits).value();
  const auto other = make_scheduler(GetParam(), kSettings, &limits).value();
  std::vector<IoRequest> requests(4);
  for (IoRequest& request : requests) request = {.size = {4 * kMiB}, .cost = 4 * kMiB};
  for (Scheduler* each : {one.get(), other.get()}) {
    ASSERT_TRUE(each->set_share(AppId{0}, slow, {}).has_value());
  }
  TimePoint now = TimePoint{} + 1h;
  const auto serve = [&](Scheduler& lane, IoRequest& request) {
    lane.enqueue(request, now);
    return lane.next(now).request == &request;
  };
  ASSERT_TRUE(serve(*other, requests[0]));
  now += 2h;
  ASSERT_TRUE(serve(*one, requests[1]));
  ASSERT_FALSE(serve(*other, requests[2]));
  other->withdraw(requests[2], now + 1min);
  const Share fast = {.rate = {kGiB}, .burst = {4 * kMiB}};
  now += 2min;
  for (Scheduler* each : {one.get(), other.get()}) {
    ASSERT_TRUE(each->set_share(AppId{0}, fast, now).has_value());
  }
  now += 10s;
  EXPECT_TRUE(serve(*one, requests[3]));
}

TEST_P(SharedLimits, WhatWasChargedMoreInOneLaneIsMissingInTheOthers) {
  RateLimits limits;
  const auto one = make_scheduler(GetParam(), kSettings, &limits).value();
  const auto other = make_scheduler(GetParam(), kSettings, &limits).value();
  for (Scheduler* each : {one.get(), other.get()}) {
    ASSERT_TRUE(each->set_share(AppId{0}, kLimited, {}).has_value());
  }
  std::vector<IoRequest> requests(2);
  for (IoRequest& request : requests) request = {.size = {kMiB}, .cost = kMiB};
  one->enqueue(requests[0], {});
  ASSERT_EQ(one->next({}).request, requests.data());
  one->charge_more(requests[0], {.cost = kRate, .size = {kRate}}, {});
  other->enqueue(requests[1], {});
  const Scheduler::Decision decision = other->next({});
  EXPECT_EQ(decision.request, nullptr);
  EXPECT_EQ(decision.until, TimePoint{} + 1s);
}

// A lane that finds its tokens taken by another names the next time.
TEST_P(SharedLimits, TheTimeToAskAgainIsRightWhenAnotherLaneTookTheTokens) {
  RateLimits limits;
  std::vector<std::unique_ptr<Scheduler>> lanes;
  std::deque<IoRequest> requests;
  for (int i = 0; i < 2; ++i) {
    lanes.push_back(make_scheduler(GetParam(), kSettings, &limits).value());
    ASSERT_TRUE(
        lanes.back()->set_share(AppId{0}, {.rate = {kMiB}, .burst = {kMiB}}, {}).has_value());
    for (int each = 0; each < 3; ++each) {
      requests.push_back({.size = {kMiB}, .cost = kMiB});
      lanes.back()->enqueue(requests.back(), {});
    }
  }
  EXPECT_NE(lanes[0]->next({}).request, nullptr);
  EXPECT_EQ(lanes[0]->next({}).until, TimePoint{} + 1s);
  EXPECT_EQ(lanes[1]->next({}).until, TimePoint{} + 1s);
  // The first one had its turn, so it gives way once.
  EXPECT_EQ(lanes[0]->next(TimePoint{} + 1s).until, TimePoint{} + 1s + 1ns);
  EXPECT_NE(lanes[1]->next(TimePoint{} + 1s).request, nullptr);
  EXPECT_EQ(lanes[0]->next(TimePoint{} + 1s + 1ns).until, TimePoint{} + 2s);
  // It does not give way twice, nor to a lane that is not asked.
  EXPECT_NE(lanes[0]->next(TimePoint{} + 2s).request, nullptr);
  EXPECT_EQ(lanes[1]->next(TimePoint{} + 2s).until, TimePoint{} + 3s);
  EXPECT_EQ(lanes[0]->next(TimePoint{} + 3s).until, TimePoint{} + 3s + 1ns);
  EXPECT_NE(lanes[0]->next(TimePoint{} + 3s + 1ns).request, nullptr);
}

TEST_P(SharedLimits, ALaneClaimsNothingForARequestThatWasWithdrawn) {
  RateLimits limits;
  const Share share = {.rate = {100 * kKiB}, .burst = {4 * kMiB}};
  std::vector<std::unique_ptr<Scheduler>> lanes;
  for (int lane = 0; lane < 2; ++lane) {
    lanes.push_back(make_scheduler(GetParam(), kSettings, &limits).value());
    ASSERT_TRUE(lanes.back()->set_share(AppId{0}, share, {}).has_value());
  }
  TimePoint now = TimePoint{} + 1s;
  const auto request_of = [&](std::uint64_t size) {
    return IoRequest{.size = {size}, .cost = size, .arrival = now};
  };
  IoRequest first = request_of(4 * kMiB);
  IoRequest large = request_of(4 * kMiB);
  IoRequest small = request_of(4 * kKiB);
  lanes[0]->enqueue(first, now);
  ASSERT_EQ(lanes[0]->next(now).request, &first);
  lanes[1]->enqueue(large, now);
  EXPECT_GT(lanes[1]->next(now).until, now + 40s);
  lanes[0]->enqueue(small, now);
  now += 50ms;
  const Scheduler::Decision later = lanes[0]->next(now);
  EXPECT_EQ(later.request, nullptr) << "it is the turn of the other lane";
  EXPECT_LE(later.until, now + 100ms);
  lanes[1]->withdraw(large, now);
  EXPECT_EQ(lanes[0]->next(later.until).request, &small);
}

TEST(RateLimits, FlowsWithoutALimitTakeNoMemory) {
  RateLimits limits;
  const auto scheduler = make_scheduler("sfq", {}, &limits).value();
  for (std::uint32_t app = 0; app < 1000; ++app) {
    (void)scheduler->set_share(AppId{app}, {.weight = 2}, {});
  }
  EXPECT_EQ(limits.size(), 0U);
  (void)scheduler->set_share(AppId{3}, kLimited, {});
  EXPECT_EQ(limits.size(), 4U);
  EXPECT_TRUE(limits.limited(AppId{3}));
  EXPECT_FALSE(limits.limited(AppId{999}));
  EXPECT_EQ(limits.ready_at({.app = AppId{999}}), TimePoint::min());
  scheduler->remove(AppId{3}, {});
  EXPECT_FALSE(limits.limited(AppId{3}));
}

TEST(RateLimits, UsersThatLeaveMakePlaceForOthers) {
  RateLimits limits;
  for (int i = 0; i < 3; ++i) {
    std::vector<RateLimits::User> users;
    for (int user = 0; user < 70; ++user) users.push_back(limits.join());
    for (RateLimits::User user = 0; user < RateLimits::kMostUsers; ++user) {
      EXPECT_EQ(users[user], user);
    }
    EXPECT_EQ(users.back(), RateLimits::kMostUsers - 1);
    for (const RateLimits::User user : users) limits.leave(user);
  }
}

}  // namespace
}  // namespace vpfs
