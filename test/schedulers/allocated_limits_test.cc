// A coordinator's limits, for every policy that can enforce them.
#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/registry.h"
#include "test/schedulers/allocated.h"
#include "test/support/allocation_count.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

constexpr SchedulerSettings kWide = {.depth = {.requests = 100'000}};

Limits operations(std::uint64_t rate) {
  return {.operations = rate};
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
  IoRequest& add(std::uint64_t size, std::size_t lane = 0, IoKind kind = IoKind::read,
                 Duration late = {}) {
    IoRequest& request = requests_.emplace_back();
    request = {
        .kind = kind, .size = {size}, .cost = std::max<Cost>(size, 1), .arrival = now_ - late};
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
      const Duration age = now_ - decision.request->arrival;
      passed_ += decision.request->passed_limit ? 1 : 0;
      if (decision.request->passed_limit) youngest_ = std::min(youngest_, age);
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
  Duration youngest_ = 1h;  // that passed
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

TEST_P(AllocatedLimits, MetadataOperationsAreLimitedApart) {
  make();
  set_hold(1h);
  allocate({.metadata_operations = 50});
  for (int i = 0; i < 100; ++i) (void)add(64 * kKiB);
  EXPECT_EQ(send(), 100 * 64 * kKiB) << "data has no limit";
  for (int i = 0; i < 100; ++i) (void)add(0, 0, IoKind::metadata);
  (void)send();
  EXPECT_EQ(scheduler().queued(), 95U);
  EXPECT_EQ(until_, now_ + 20ms);
  EXPECT_EQ(scheduler().why_waiting(kFlow, now_).reason, "the coordinator's limit");
  now_ = until_;
  (void)send();
  EXPECT_EQ(scheduler().queued(), 94U);
  allocate({.operations = 1'000'000, .metadata_operations = 100});
  now_ += 10ms;
  (void)send();
  EXPECT_EQ(scheduler().queued(), 93U) << "no change gives a burst";
  allocate({.operations = 1'000'000});
  (void)send();
  EXPECT_EQ(scheduler().queued(), 0U);
}

TEST_P(AllocatedLimits, MetadataCountsAgainstTheLimitOfAllOperationsToo) {
  make();
  set_hold(1h);
  allocate({.operations = 20, .metadata_operations = 1000});
  for (int i = 0; i < 10; ++i) (void)add(0, 0, i % 2 == 0 ? IoKind::metadata : IoKind::write);
  (void)send();
  EXPECT_EQ(scheduler().queued(), 8U);
  EXPECT_EQ(until_, now_ + 50ms);
}

TEST_P(AllocatedLimits, AnOldMetadataOperationPassesItsLimitAndLeavesNoDebt) {
  make();
  set_hold(2s);
  allocate({.metadata_operations = 0});
  for (int i = 0; i < 3; ++i) (void)add(0, 0, IoKind::metadata);
  (void)send();
  EXPECT_EQ(until_, now_ + 1s);
  EXPECT_EQ(scheduler().queued(), 3U);
  now_ = until_;
  (void)send();
  EXPECT_EQ(scheduler().queued(), 0U);
  EXPECT_EQ(passed_, 3U);
  allocate({.metadata_operations = 10});
  now_ += 100ms;
  (void)add(0, 0, IoKind::metadata);
  (void)send();
  EXPECT_EQ(scheduler().queued(), 0U) << "what passed leaves no debt";
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

TEST(AllocatedLimit, AStopKeepsWhateverIsMissing) {
  constexpr std::uint64_t kRate = 100'000'000;
  constexpr std::uint64_t kBurst = 16 * kGiB;
  TimePoint now = TimePoint{} + 1h;
  AllocatedLimit limit;
  EXPECT_TRUE(limit.set(kRate, kBurst, nullptr, now));
  limit.take(kBurst, now);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(limit.set(0, kBurst, nullptr, now));
    EXPECT_EQ(limit.ready_at(1), kNever);
    now += 1s;
    EXPECT_TRUE(limit.set(kRate, kBurst, nullptr, now));
    EXPECT_EQ(limit.ready_at(kRate), now + 1s) << "nothing came while it was stopped";
  }
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

// The queue always has a late request, so what is known of them must end.
TEST_P(AllocatedLimits, LateRequestsThatFollowEachOtherDoNotEndTheLimit) {
  make();
  set_hold(20s);
  allocate(operations(1));
  // How old the youngest is that passes, if each second request is so late. More come than may go.
  const auto age_of_youngest_that_passes = [&](Duration late) {
    for (IoRequest& each : requests_) {
      if (each.queued) scheduler().withdraw(each, now_);
    }
    now_ += 1h;
    for (int second = 0; second < 200; ++second, now_ += 1s) {
      (void)add(1);
      (void)add(1, 0, IoKind::read, late);
      (void)send();
    }
    return youngest_;
  };
  // A quarter of the hold time, and requests come once in a second.
  EXPECT_GE(age_of_youngest_that_passes(1ms), 4s) << "two threads hand requests over in turn";
  EXPECT_GE(age_of_youngest_that_passes(1s), 4s);
  EXPECT_GT(passed_, 0U);
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

TEST_P(AllocatedLimits, LanesTakeTurnsWithMetadataOperations) {
  make(3);
  set_hold(1h);
  std::vector<std::size_t> sent(3);
  for (int i = 0; i < 3000; ++i) {
    for (std::size_t lane = 0; lane < 3; ++lane) {
      while (lanes_[lane]->queued() < 4) (void)add(0, lane, IoKind::metadata);
    }
    if (i % 10 == 0) allocate({.metadata_operations = 100U + static_cast<std::uint64_t>(i % 20)});
    for (int round = 0; round < 3; ++round) {
      for (std::size_t lane = 0; lane < 3; ++lane) {
        const std::size_t before = lanes_[lane]->queued();
        (void)send(lane);
        sent[lane] += before - lanes_[lane]->queued();
      }
      now_ += 1ns;
    }
    now_ += 5ms;
  }
  const std::size_t sum = sent[0] + sent[1] + sent[2];
  EXPECT_NEAR(static_cast<double>(sum), 15.0 * 105, 0.05 * 15 * 105);
  for (const std::size_t each : sent) {
    EXPECT_NEAR(static_cast<double>(each), static_cast<double>(sum) / 3, 0.1 * 500);
  }
}

TEST_P(AllocatedLimits, DataInOneLaneDoesNotWaitForMetadataOperationsInAnother) {
  make(2);
  set_hold(1h);
  for (int i = 0; i < 10; ++i) (void)add(0, 1, IoKind::metadata);
  for (int i = 0; i < 100; ++i) {
    // Each cycle asks the lanes again.
    if (i % 10 == 0) allocate({.bytes = BytesPerSecond{100 * kMiB}, .metadata_operations = 10});
    (void)add(64 * kKiB, 0);
    EXPECT_EQ(send(0), 64 * kKiB) << i;
    (void)send(1);
    now_ += 1ms;
  }
  EXPECT_EQ(lanes_[1]->queued(), 9U);
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
