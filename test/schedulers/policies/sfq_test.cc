#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/registry.h"

namespace vpfs {
namespace {

constexpr TimePoint kNow = {};

// A scheduler with depth 1 by default, so that every order is decided by tags alone. Flows are
// letters: 'a' is AppId 0.
class SfqTest : public ::testing::Test {
 protected:
  void share(char flow, std::uint32_t weight) {
    (void)sfq_->set_share(app(flow), {.weight = weight}, kNow);
  }
  IoRequest& add(char flow, Cost cost) {
    IoRequest& request = requests_.emplace_back();
    request.app = app(flow);
    request.cost = cost;
    sfq_->enqueue(request, kNow);
    return request;
  }
  void add(char flow, Cost cost, int count) {
    for (int i = 0; i < count; ++i) add(flow, cost);
  }
  // Sends and completes up to `count` requests; returns their flows in order.
  std::string serve(int count) {
    std::string flows;
    for (int i = 0; i < count; ++i) {
      IoRequest* const request = sfq_->next(kNow).request;
      if (request == nullptr) break;
      flows += static_cast<char>('a' + std::to_underlying(request->app));
      sfq_->complete(*request, request->cost, kNow);
    }
    return flows;
  }
  static AppId app(char flow) { return AppId{static_cast<std::uint32_t>(flow - 'a')}; }
  static std::ptrdiff_t count(const std::string& flows, char flow) {
    return std::ranges::count(flows, flow);
  }

  std::unique_ptr<Scheduler> sfq_ = make_scheduler("sfq", {.depth = {.requests = 1}}).value();
  std::deque<IoRequest> requests_;
};

TEST_F(SfqTest, SendsByStartTagAndBreaksTiesByArrival) {
  share('a', 2);
  share('b', 1);
  add('b', 100, 3);
  add('a', 100, 6);
  // S: b 0 100 200, a 0 50 100 150 200 250; at a tie the request that came first goes first.
  EXPECT_EQ(serve(9), "baabaabaa");
}

TEST_F(SfqTest, ServiceFollowsWeightsExactly) {
  share('a', 3);
  share('b', 1);
  add('a', 4096, 400);
  add('b', 4096, 400);
  const std::string flows = serve(400);
  EXPECT_NEAR(static_cast<double>(count(flows, 'a')), 300, 1);
}

TEST_F(SfqTest, CostsCountNotRequests) {
  share('a', 1);
  share('b', 1);
  add('a', 1000, 1000);
  add('b', 4000, 1000);
  const std::string flows = serve(1000);
  EXPECT_NEAR(static_cast<double>(count(flows, 'a')), 800, 4);
}

TEST_F(SfqTest, IdleFlowGainsNoCredit) {
  share('a', 1);
  share('b', 1);
  add('a', 100, 1000);
  EXPECT_EQ(serve(500), std::string(500, 'a'));
  add('b', 100, 100);
  const std::string flows = serve(20);
  EXPECT_NEAR(static_cast<double>(count(flows, 'b')), 10, 1);
}

TEST_F(SfqTest, AFlowThatUsedIdleCapacityIsNotPunishedForIt) {
  share('a', 1);
  share('b', 1);
  add('a', 100, 1000);
  serve(500);
  add('b', 100, 100);
  EXPECT_GE(count(serve(4), 'a'), 1);
}

TEST_F(SfqTest, AfterAnIdleMomentEveryFlowStartsEqual) {
  share('a', 1);
  share('b', 1);
  add('a', 1'000'000);
  serve(1);
  // All are idle: v is at the end of a's charge, so a owes nothing.
  add('a', 100);
  add('b', 100);
  EXPECT_EQ(serve(2), "ab");
}

TEST_F(SfqTest, AWeightAppliesToRequestsThatArriveFromThenOn) {
  share('a', 1);
  share('b', 1);
  add('a', 100, 10);
  add('b', 100, 60);
  share('a', 4);
  EXPECT_EQ(count(serve(20), 'a'), 10) << "those came under weight 1";
  add('a', 100, 100);
  EXPECT_NEAR(static_cast<double>(count(serve(50), 'a')), 40, 1);
}

TEST_F(SfqTest, AWithdrawnRequestIsNotCharged) {
  share('a', 1);
  share('b', 1);
  IoRequest& head = add('a', 1000);
  add('a', 10);
  IoRequest& middle = add('a', 1000);
  add('a', 10);
  IoRequest& tail = add('a', 1000);
  add('b', 10, 5);
  sfq_->withdraw(middle, kNow);
  sfq_->withdraw(tail, kNow);
  sfq_->withdraw(head, kNow);
  add('a', 10, 2);
  // S: a and b 0 10 20 30, b 40; at 20 and 30 the requests of b came first.
  EXPECT_EQ(serve(9), "ababbabab");
}

// After withdrawals the order is exactly that without the withdrawn requests.
TEST_F(SfqTest, WithdrawingIsAsIfTheRequestHadNeverCome) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    const auto with = make_scheduler("sfq", {.depth = {.requests = 3}}).value();
    const auto without = make_scheduler("sfq", {.depth = {.requests = 3}}).value();
    for (std::uint32_t flow = 0; flow < 4; ++flow) {
      // Powers of two leave no remainder to carry.
      const Share weight = {.weight = 1U << random() % 8};
      (void)with->set_share(AppId{flow}, weight, kNow);
      (void)without->set_share(AppId{flow}, weight, kNow);
    }
    std::deque<IoRequest> left(100);
    std::deque<IoRequest> right(100);
    std::deque<IoRequest> doomed(100);
    std::vector<IoRequest*> gone;
    for (std::size_t i = 0; i < left.size(); ++i) {
      left[i].app = right[i].app = AppId{static_cast<std::uint32_t>(random() % 4)};
      left[i].cost = right[i].cost = 1 + random() % 10'000;
      doomed[i].app = AppId{static_cast<std::uint32_t>(random() % 4)};
      doomed[i].cost = 1 + random() % kMaxCost;
      with->enqueue(left[i], kNow);
      without->enqueue(right[i], kNow);
      with->enqueue(doomed[i], kNow);
      gone.push_back(&doomed[i]);
    }
    std::ranges::shuffle(gone, random);
    for (IoRequest* request : gone) with->withdraw(*request, kNow);
    for (std::size_t i = 0; i < left.size(); ++i) {
      IoRequest* const a = with->next(kNow).request;
      IoRequest* const b = without->next(kNow).request;
      ASSERT_NE(a, nullptr);
      ASSERT_NE(b, nullptr);
      ASSERT_EQ(std::ranges::find(left, a, [](IoRequest& r) { return &r; }) - left.begin(),
                std::ranges::find(right, b, [](IoRequest& r) { return &r; }) - right.begin())
          << "seed " << seed << " at " << i;
      with->complete(*a, a->cost, kNow);
      without->complete(*b, b->cost, kNow);
    }
  }
}

TEST_F(SfqTest, WhatWasNotDoneIsGivenBack) {
  share('a', 1);
  share('b', 1);
  add('a', 1000, 50);
  add('b', 100, 500);
  std::string flows;
  for (int i = 0; i < 100; ++i) {
    IoRequest* const request = sfq_->next(kNow).request;
    flows += request->app == app('a') ? 'a' : 'b';
    sfq_->complete(*request, 100, kNow);
  }
  EXPECT_NEAR(static_cast<double>(count(flows, 'a')), 50, 1);
}

TEST_F(SfqTest, WhatIsGivenBackNeverMovesAFlowAheadOfTheOthersByMoreThanItHadOutstanding) {
  const auto sfq = make_scheduler("sfq", {.depth = {.requests = 4}}).value();
  (void)sfq->set_share(AppId{0}, {}, kNow);
  (void)sfq->set_share(AppId{1}, {}, kNow);
  std::deque<IoRequest> requests(200);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].app = AppId{static_cast<std::uint32_t>(i % 2)};
    requests[i].cost = 1000;
    sfq->enqueue(requests[i], kNow);
  }
  std::vector<IoRequest*> sent;
  while (IoRequest* const request = sfq->next(kNow).request) sent.push_back(request);
  ASSERT_EQ(sent.size(), 4U);
  for (IoRequest* const request : sent) {
    sfq->complete(*request, request->app == AppId{0} ? 0 : request->cost, kNow);
  }
  // Two requests came back whole: flow 0 may be two ahead, and then they alternate.
  std::string flows;
  for (int i = 0; i < 12; ++i) {
    IoRequest* const request = sfq->next(kNow).request;
    flows += request->app == AppId{0} ? 'a' : 'b';
    sfq->complete(*request, request->cost, kNow);
  }
  EXPECT_EQ(count(flows, 'a'), 7);
  EXPECT_EQ(count(flows.substr(4), 'a'), 4);
}

TEST_F(SfqTest, CreditEndsWithTheBacklog) {
  const auto sfq = make_scheduler("sfq", {.depth = {.requests = 8}}).value();
  (void)sfq->set_share(AppId{0}, {}, kNow);
  (void)sfq->set_share(AppId{1}, {}, kNow);
  std::deque<IoRequest> requests(100);
  std::size_t used = 0;
  const auto add_to = [&](std::uint32_t flow) {
    requests[used].app = AppId{flow};
    requests[used].cost = 1000;
    sfq->enqueue(requests[used++], kNow);
  };
  for (int i = 0; i < 5; ++i) add_to(0);
  for (int i = 0; i < 30; ++i) add_to(1);
  IoRequest* sent[8];
  for (IoRequest*& request : sent) request = sfq->next(kNow).request;
  for (IoRequest* const request : sent) {
    sfq->complete(*request, request->app == AppId{0} ? 0 : request->cost, kNow);
  }
  for (int i = 0; i < 12; ++i) {
    IoRequest* const request = sfq->next(kNow).request;
    sfq->complete(*request, request->cost, kNow);
  }
  ASSERT_EQ(sfq->flow(AppId{0}).queued, 0U);
  for (int i = 0; i < 20; ++i) add_to(0);
  std::string flows;
  for (int i = 0; i < 8; ++i) {
    IoRequest* const request = sfq->next(kNow).request;
    flows += request->app == AppId{0} ? 'a' : 'b';
    sfq->complete(*request, request->cost, kNow);
  }
  EXPECT_EQ(count(flows, 'a'), 4) << flows;
}

// Each request moves v by 2^60, so v is taken off all tags every few requests.
TEST_F(SfqTest, SharesHoldWhileTagsAreRebased) {
  share('a', 1);
  share('b', 2);
  share('c', 1);
  add('a', kMaxCost, 300);
  add('b', kMaxCost, 600);
  for (int round = 0; round < 30; ++round) {
    const std::string flows = serve(30);
    EXPECT_NEAR(static_cast<double>(count(flows, 'b')), 20, 1) << "round " << round;
  }
  EXPECT_EQ(sfq_->queued(), 0U);
  add('c', kMaxCost, 20);
  add('a', kMaxCost, 20);
  EXPECT_NEAR(static_cast<double>(count(serve(20), 'c')), 10, 1) << "after idle across rebasing";
}

TEST_F(SfqTest, ExtremeWeightsKeepTheirRatio) {
  share('a', 1);
  share('b', Share::kMaxWeight);
  add('a', 4096, 3);
  add('b', 4096 * 1000, 3000);
  const std::string flows = serve(2002);
  EXPECT_NEAR(static_cast<double>(count(flows, 'a')), 2, 1);
}

TEST_F(SfqTest, SmallCostsAtLargeWeightsLoseNothingToRounding) {
  share('a', 1'000'000);
  share('b', 600'000);
  add('a', 1, 16'000);
  add('b', 1, 16'000);
  const std::string flows = serve(16'000);
  EXPECT_NEAR(static_cast<double>(count(flows, 'a')), 10'000, 2);
}

TEST_F(SfqTest, SaysWhyAFlowWaits) {
  share('a', 1);
  share('b', 1);
  add('a', 100, 2);
  add('b', 100);
  EXPECT_EQ(sfq_->why_waiting(app('a'), kNow).reason, "is the next to be sent");
  EXPECT_EQ(sfq_->why_waiting(app('b'), kNow).reason,
            "flows that had less for their weight go first");
  IoRequest* const sent = sfq_->next(kNow).request;
  EXPECT_EQ(sfq_->why_waiting(app('b'), kNow).reason,
            "as many requests are outstanding as the depth allows");
  sfq_->complete(*sent, sent->cost, kNow);
  EXPECT_EQ(sfq_->why_waiting(app('b'), kNow).reason, "is the next to be sent");
}

}  // namespace
}  // namespace vpfs
