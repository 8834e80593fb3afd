// Schedulers that share by the total service of their flows: one alone is as without.
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/anticipation_settings.h"
#include "schedulers/policies/registry.h"
#include "test/support/simulation/flow_simulation.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

std::vector<FlowWork> random_works(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<FlowWork> works;
  for (std::uint64_t i = 0; i < 2 + random() % 6; ++i) {
    FlowWork work = {.share = {.weight = static_cast<std::uint32_t>(1 + random() % 20)},
                     .outstanding = static_cast<std::uint32_t>(1 + random() % 30),
                     .least_size = 4 * kKiB,
                     .most_size = 4 * kKiB << random() % 9,
                     .short_percent = static_cast<std::uint32_t>(random() % 2 * 30)};
    if (random() % 3 == 0) work.share.min = {5 * kMiB};
    if (random() % 4 == 0) work.share.rate = {20 * kMiB};
    if (random() % 2 == 0) {
      work.active = std::chrono::milliseconds(1 + random() % 100);
      work.pause = std::chrono::milliseconds(1 + random() % 300);
    }
    works.push_back(work);
  }
  return works;
}

// The order in which requests are sent: flow and arrival order of each.
std::vector<std::pair<AppId, std::uint64_t>> order_of(std::uint64_t seed, bool has_totals) {
  SchedulerSettings settings = {.depth = {.requests = 1U << seed % 5}};
  settings.own.set(AnticipationSettings{.on = seed % 3 == 0});
  RateLimits limits;
  const auto totals = std::make_unique<Scheduler::TotalServices>();
  const auto scheduler =
      make_scheduler(*find_policy("sfq"), settings, &limits, has_totals ? totals.get() : nullptr);
  FlowSimulation simulation(*scheduler, {.parallelism = 2, .cost_per_second = 200 * kMiB},
                            random_works(seed), seed);
  std::vector<std::pair<AppId, std::uint64_t>> order;
  simulation.on_sent = [&](const IoRequest& request) {
    order.emplace_back(request.app, request.order);
  };
  simulation.run(2s);
  return order;
}

TEST(SfqSiblings, ASchedulerWithoutSiblingsIsAsWithoutTotals) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const auto order = order_of(seed, true);
    ASSERT_GT(order.size(), 100U);
    EXPECT_EQ(order, order_of(seed, false));
  }
}

// A scheduler that ends takes its requests with it, and what it sent stays counted.
TEST(SfqSiblings, ASchedulerThatEndsLeavesNoRequestBehind) {
  RateLimits limits;
  Scheduler::TotalServices totals;
  const auto make = [&] { return make_scheduler(*find_policy("sfq"), {}, &limits, &totals); };
  const auto first = make();
  auto second = make();
  for (Scheduler* each : {first.get(), second.get()}) {
    ASSERT_TRUE(each->set_share(AppId{0}, {}, TimePoint{}));
  }
  IoRequest request = {.app = AppId{0}, .size = {kMiB}, .cost = kMiB};
  second->enqueue(request, TimePoint{});
  ASSERT_EQ(second->next(TimePoint{}).request, &request);
  EXPECT_EQ(totals.front()[0].present, 1U);
  const auto served = totals.front()[0].served;
  EXPECT_GT(served, 0U);
  second.reset();
  EXPECT_EQ(totals.front()[0].present, 0U);
  EXPECT_EQ(totals.front()[0].served, served);
}

// Flow 0 got 10 MiB at the sibling, so flow 1 goes first here for as much.
TEST(SfqSiblings, WhatASiblingSendsCountsAtOnce) {
  RateLimits limits;
  Scheduler::TotalServices totals;
  const SchedulerSettings settings = {.depth = {.requests = 100}};
  const auto here = make_scheduler(*find_policy("sfq"), settings, &limits, &totals);
  const auto sibling = make_scheduler(*find_policy("sfq"), settings, &limits, &totals);
  std::vector<IoRequest> requests(60);
  for (Scheduler* each : {here.get(), sibling.get()}) {
    for (const std::uint32_t flow : {0U, 1U}) {
      ASSERT_TRUE(each->set_share(AppId{flow}, {}, TimePoint{}));
    }
  }
  std::size_t used = 0;
  const auto add = [&](Scheduler& to, std::uint32_t flow, int count) {
    for (int i = 0; i < count; ++i) {
      IoRequest& request = requests[used++];
      request = {.app = AppId{flow}, .size = {kMiB}, .cost = kMiB};
      to.enqueue(request, TimePoint{});
    }
  };
  add(*here, 0, 20);
  add(*here, 1, 20);
  add(*sibling, 0, 10);
  for (int i = 0; i < 10; ++i) ASSERT_NE(sibling->next(TimePoint{}).request, nullptr);
  int first = 0;
  for (int i = 0; i < 10; ++i) {
    const IoRequest* const request = here->next(TimePoint{}).request;
    ASSERT_NE(request, nullptr);
    first += request->app == AppId{0} ? 1 : 0;
  }
  EXPECT_LE(first, 1);
}

// A flow sends some requests at one scheduler, then one at the other, beside a flow that always has
// requests at both. What it got at the first makes a debt just when its request comes, so a limit
// or a minimum and the debt place one head. Each request must come out once, and only what came in.
void alternate(const Share& share) {
  RateLimits limits;
  Scheduler::TotalServices totals;
  const SchedulerSettings settings = {.depth = {.requests = 2}};
  const std::unique_ptr<Scheduler> lanes[] = {
      make_scheduler(*find_policy("sfq"), settings, &limits, &totals),
      make_scheduler(*find_policy("sfq"), settings, &limits, &totals)};
  TimePoint now = TimePoint{} + 1h;
  for (const auto& lane : lanes) {
    ASSERT_TRUE(lane->set_share(AppId{0}, share, now));
    ASSERT_TRUE(lane->set_share(AppId{1}, {}, now));
  }
  std::vector<std::unique_ptr<IoRequest>> requests;
  std::set<const IoRequest*> queued;
  const auto add = [&](Scheduler& to, std::uint32_t flow) {
    requests.push_back(std::make_unique<IoRequest>());
    *requests.back() = {
        .app = AppId{flow}, .size = {kMiB}, .cost = kMiB, .arrival = now, .order = requests.size()};
    to.enqueue(*requests.back(), now);
    queued.insert(requests.back().get());
  };
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    Scheduler& here = *lanes[round % 2];
    for (std::uint64_t i = 0; i <= random() % 3; ++i) add(here, 0);
    const IoRequest* const last = requests.back().get();
    // Some are given up while they are in debt or wait for their limit.
    if (random() % 4 == 0) {
      here.withdraw(*requests.back(), now);
      queued.erase(last);
    }
    for (int steps = 0; queued.contains(last) && steps < 3000; ++steps) {
      for (const auto& lane : lanes) {
        while (lane->queued() < 2) add(*lane, 1);
        const IoRequest* const request = lane->next(now).request;
        if (request == nullptr) continue;
        ASSERT_EQ(queued.erase(request), 1U) << "round " << round;
        lane->complete(*request, request->cost, now);
      }
      now += 10ms;
    }
    ASSERT_FALSE(queued.contains(last)) << "round " << round;
  }
}

TEST(SfqSiblings, AHeadInDebtThatWaitsForItsLimitIsSentOnce) {
  alternate({.rate = {2 * kMiB}, .burst = {kMiB}});
}

TEST(SfqSiblings, AHeadInDebtThatHasAMinimumIsSentOnce) {
  alternate({.min = {kMiB}});
}

TEST(SfqSiblings, AHeadInDebtThatHasBothIsSentOnce) {
  alternate({.weight = 3, .rate = {4 * kMiB}, .burst = {kMiB}, .min = {kMiB}});
}

}  // namespace
}  // namespace vpfs
