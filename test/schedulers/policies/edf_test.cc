#include "schedulers/policies/edf.h"

#include <algorithm>
#include <iostream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.h"
#include "test/schedulers/capacities.h"
#include "test/schedulers/draw.h"
#include "test/support/simulation/promise_simulation.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr Duration kRounding = PromiseSimulation::kRounding;

SchedulerSettings settings_of(std::uint32_t depth, Cost largest) {
  SchedulerSettings settings;
  settings.depth.requests = depth;
  settings.own.of<EdfSettings>().capacity = kEdfCapacity;
  settings.own.of<EdfSettings>().largest_request = largest;
  return settings;
}

Share curve(Cost burst, std::uint64_t rate, Duration latency) {
  return {.rate = {rate}, .burst = {burst}, .latency = latency};
}

Share finish(Cost bytes, TimePoint by, Cost burst = 10'000) {
  return {.burst = {burst}, .latency = 100ms, .finish_bytes = {bytes}, .finish_by = by};
}

// The time named by a refusal.
Duration named_time(const Result<void>& refused) {
  const std::string& text = refused.error().message;
  const std::size_t at = text.find(" is ");
  const std::size_t end = text.find(" from now");
  if (at == std::string::npos) return Duration::zero();
  return parse_duration(text.substr(at + 4, end == std::string::npos ? end : end - at - 4)).value();
}

TEST(Edf, TheEarliestDeadlineGoesFirst) {
  const auto scheduler = make_scheduler("edf", settings_of(1, 1000)).value();
  EXPECT_TRUE(scheduler->set_share(AppId{0}, {}, {}));
  EXPECT_TRUE(scheduler->set_share(AppId{1}, {.latency = 50ms}, {}));
  EXPECT_TRUE(scheduler->set_share(AppId{2}, curve(1000, 1000, 100ms), {}));
  std::array<IoRequest, 4> requests;
  for (std::uint32_t i = 0; i < 4; ++i) {
    requests[i].app = AppId{i % 3};
    requests[i].cost = 1000;
    scheduler->enqueue(requests[i], {});
  }
  const auto next = [&] {
    IoRequest* const request = scheduler->next({}).request;
    scheduler->complete(*request, request->cost, {});
    return request - requests.data();
  };
  EXPECT_EQ(next(), 2) << "what is promised goes before what is only wished";
  EXPECT_EQ(next(), 1);
  EXPECT_EQ(next(), 0);
  EXPECT_EQ(next(), 3);
  EXPECT_EQ(scheduler->next({}).request, nullptr);
}

TEST(Edf, WhatIsLetPassTakesTokensOfItsCurve) {
  const auto scheduler = make_scheduler("edf", settings_of(1, 1000)).value();
  EXPECT_TRUE(scheduler->set_share(AppId{0}, curve(1000, 1000, 100ms), {}));
  std::array<IoRequest, 3> requests;
  for (IoRequest& each : requests) {
    each.cost = 300;
    scheduler->enqueue(each, {});
  }
  scheduler->let_pass(requests[1], {});
  scheduler->let_pass(requests[0], {});
  EXPECT_EQ(scheduler->report(AppId{0}, {}).integer("tokens"), 400);
  EXPECT_EQ(scheduler->next({}).request, &requests[2]);
}

TEST(Edf, WhatARequestDidBeyondItsCostComesOutOfItsCurve) {
  const auto scheduler = make_scheduler("edf", settings_of(2, 1000)).value();
  EXPECT_TRUE(scheduler->set_share(AppId{0}, curve(1000, 1000, 100ms), {}));
  std::array<IoRequest, 2> requests;
  for (IoRequest& each : requests) {
    each.cost = 300;
    scheduler->enqueue(each, {});
  }
  ASSERT_EQ(scheduler->next({}).request, &requests[0]);
  scheduler->charge_more(requests[0], {.cost = 900, .size = {900}}, {});
  EXPECT_EQ(scheduler->report(AppId{0}, {}).integer("tokens"), -200);
}

TEST(Edf, APromiseCountsWhatMayBeAheadAtTheServer) {
  PromiseSimulation by_requests(settings_of(4, 1000), kEdfCapacity, 1);
  EXPECT_TRUE(by_requests.set_share(0, curve(2000, 1000, 6ms)));
  const Result<void> refused = by_requests.set_share(0, curve(2000, 1000, 6ms - 1us));
  ASSERT_FALSE(refused);
  EXPECT_EQ(named_time(refused), 6ms);

  SchedulerSettings settings = settings_of(4, 1000);
  settings.depth.cost = 2500;
  PromiseSimulation by_cost(settings, kEdfCapacity, 1);
  EXPECT_EQ(named_time(by_cost.set_share(0, curve(2000, 1000, 1ms))), 4500us);
}

TEST(Edf, NothingIsPromisedWithoutACapacity) {
  SchedulerSettings settings = settings_of(4, 1000);
  settings.own.of<EdfSettings>().capacity = 0;
  PromiseSimulation simulation(settings, kEdfCapacity, 1);
  EXPECT_FALSE(simulation.set_share(0, curve(1000, 1000, 1s)));
  EXPECT_FALSE(simulation.set_share(1, finish(1000, TimePoint{} + 10s)));
  EXPECT_TRUE(simulation.set_share(2, {.latency = 1s}));
  simulation.flood(0, 4, 1000, 1000);
  simulation.run_until(TimePoint{} + 1s);
  EXPECT_EQ(simulation.watch(0).done, 1'000'000U) << "served all the same";
  EXPECT_EQ(simulation.scheduler().report(AppId{0}, simulation.now()).get<bool>("promised"), false);
  EXPECT_FALSE(simulation.scheduler().server(simulation.now()).integer("capacity"));
}

TEST(Edf, ARefusalSaysWhatIsWrong) {
  PromiseSimulation simulation(settings_of(1, 1000), kEdfCapacity, 1);
  EXPECT_THAT(simulation.set_share(0, curve(1, kEdfCapacity + 1, 1s)).error().message,
              HasSubstr("with any latency"));
  EXPECT_THAT(simulation.set_share(0, finish(kMaxCost * 8, TimePoint{} + 1h)).error().message,
              HasSubstr("for any time"));
  EXPECT_THAT(simulation.set_share(0, finish(1000, TimePoint::min())).error().message,
              HasSubstr("the earliest"));
}

// Tries many sizes, since the time is printed in rounded units.
TEST(Edf, TheEarliestTimeThatARefusalNamesIsAccepted) {
  constexpr std::uint64_t kSeed = 5;
  Draw random(kSeed);
  for (int round = 0; round < 1000; ++round) {
    PromiseSimulation simulation(settings_of(1, 1000), kEdfCapacity, 1);
    simulation.skip_to(TimePoint{} + std::chrono::microseconds(random(0, 1'000'000'000)));
    EXPECT_TRUE(simulation.set_share(0, curve(random(1, 10'000), random(1, 500'000), 1s)));
    const Cost size = random(1, std::uint64_t{1} << random(10, 35));
    const Result<void> refused = simulation.set_share(1, curve(size, 400'000, 1us));
    ASSERT_FALSE(refused);
    EXPECT_TRUE(simulation.set_share(1, curve(size, 400'000, named_time(refused))))
        << "seed " << kSeed << ": " << refused.error().message;
    simulation.remove(1);
    const Result<void> too_early = simulation.set_share(2, finish(size, simulation.now() + 1us));
    ASSERT_FALSE(too_early);
    EXPECT_TRUE(simulation.set_share(2, finish(size, simulation.now() + named_time(too_early))))
        << "seed " << kSeed << ": " << too_early.error().message;
  }
}

TEST(Edf, CapacityThatWasIdleIsNotChargedLater) {
  PromiseSimulation simulation(settings_of(4, 1000), kEdfCapacity, 1);
  ASSERT_TRUE(simulation.set_share(0, curve(10'000, 10'000, 50ms)));
  ASSERT_TRUE(simulation.set_share(1, curve(500'000, 400'000, 1s)));
  ASSERT_TRUE(simulation.set_share(2, {}));
  for (int round = 0; round < 6; ++round) {
    const Cost before = simulation.watch(0).done;
    simulation.flood(0, 20, 1, 1000);
    simulation.run_until(simulation.now() + 2s);
    EXPECT_GT(simulation.watch(0).done - before, 1'900'000U) << "a hundred times its rate";
    simulation.flood(0, 0, 1, 1);
    simulation.flood(2, 100, 1000, 1000);
    simulation.run_until(simulation.now() + 1s);  // its bucket fills in that time
    for (int i = 0; i < 10; ++i) simulation.arrive(0, simulation.now(), 1000);
    for (int i = 0; i < 500; ++i) simulation.arrive(1, simulation.now(), 1000);
    const std::uint64_t requests = simulation.watch(0).requests;
    simulation.run_until(simulation.now() + 50ms + kRounding);
    EXPECT_EQ(simulation.watch(0).requests, requests + 10) << "round " << round;
    simulation.flood(2, 0, 1, 1);
    simulation.run_until(simulation.now() + 3s);
  }
  EXPECT_LE(simulation.worst_lateness(), kRounding);
  EXPECT_FALSE(simulation.idled());
}

// A small promise that uses a whole server moves the clock of starts by years in a second.
TEST(Edf, PromisesHoldHoweverFarTheClockOfStartsMoves) {
  for (const std::uint64_t rate : {std::uint64_t{1}, std::uint64_t{100}, std::uint64_t{10'000}}) {
    PromiseSimulation simulation(settings_of(4, 10'000), kEdfCapacity, 1);
    ASSERT_TRUE(simulation.set_share(0, curve(20'000, rate, 500ms)));
    ASSERT_TRUE(simulation.set_share(1, curve(50'000, 400'000, 200ms)));
    ASSERT_TRUE(simulation.set_share(2, {}));
    simulation.flood(0, 30, 1000, 10'000);
    simulation.run_until(TimePoint{} + 20s);
    EXPECT_EQ(simulation.watch(0).misses, 0U);
    simulation.flood(1, 10, 1000, 10'000);
    simulation.run_until(TimePoint{} + 40s);
    simulation.flood(2, 10, 1000, 10'000);
    simulation.run_until(TimePoint{} + 60s);
    EXPECT_LE(simulation.worst_lateness(), kRounding) << rate;
    // A flow in closed loop without a target has its ten requests each second.
    EXPECT_GT(simulation.watch(2).done, 1'000'000U) << rate;
    // The first flow has its burst again after its bucket had time to fill.
    simulation.drain();
    simulation.skip_to(simulation.now() + std::chrono::seconds(20'000 / rate + 1));
    simulation.flood(2, 10, 10'000, 10'000);
    for (int i = 0; i < 20; ++i) simulation.arrive(0, simulation.now(), 1000);
    const std::uint64_t requests = simulation.watch(0).requests;
    simulation.run_until(simulation.now() + 500ms + kRounding);
    EXPECT_EQ(simulation.watch(0).requests, requests + 20) << rate;
    EXPECT_LE(simulation.worst_lateness(), kRounding) << rate;
    EXPECT_FALSE(simulation.idled());
    EXPECT_FALSE(simulation.out_of_order());
  }
}

TEST(Edf, BytesPromisedByATimeAreDoneByThen) {
  constexpr std::uint64_t kSeed = 6;
  double latest = 0;
  for (std::uint64_t seed = kSeed; seed < kSeed + 200; ++seed) {
    Draw random(seed);
    const Cost largest = random(1, 50) * 1000;
    PromiseSimulation simulation(settings_of(static_cast<std::uint32_t>(random(1, 8)), largest),
                                 kEdfCapacity, seed);
    simulation.skip_to(TimePoint{} + std::chrono::milliseconds(random(0, 100'000)));
    ASSERT_TRUE(simulation.set_share(0, curve(largest, random(1, 400'000), 2s)));
    ASSERT_TRUE(simulation.set_share(1, {}));
    using Promise = std::pair<Cost, TimePoint>;
    std::vector<Promise> promised = {{}, {}};
    for (std::uint32_t flow = 2; flow < 2 + random(1, 5); ++flow) {
      const Cost bytes = random(1, 300'000);
      // Includes bursts smaller than requests.
      const Cost burst = random(1, 2 * largest);
      TimePoint by = simulation.now() + std::chrono::milliseconds(random(1, 4000));
      Result<void> answer = simulation.set_share(flow, finish(bytes, by, burst));
      if (!answer) {
        by = simulation.now() + named_time(answer);
        if (by == simulation.now() || by > simulation.now() + 60s) break;
        ASSERT_TRUE(simulation.set_share(flow, finish(bytes, by, burst))) << "seed " << seed;
      }
      promised.emplace_back(bytes, by);
    }
    for (std::uint32_t flow = 2; flow < promised.size(); ++flow) {
      for (Cost rest = promised[flow].first; rest > 0;) {
        const Cost cost = std::min(rest, random(1, largest));
        simulation.arrive(flow, simulation.now(), cost);
        rest -= cost;
      }
    }
    const TimePoint start = simulation.now();
    simulation.flood(0, 20, 1, largest);
    simulation.flood(1, 20, largest, largest);
    simulation.run_until(std::ranges::max(promised, {}, &Promise::second).second);
    for (std::uint32_t flow = 2; flow < promised.size(); ++flow) {
      const auto& [bytes, by] = promised[flow];
      const PromiseSimulation::Watch& watch = simulation.watch(flow);
      ASSERT_EQ(watch.done, bytes) << "seed " << seed << ", flow " << flow;
      ASSERT_LE(watch.last_end, by + kRounding) << "seed " << seed << ", flow " << flow;
      ASSERT_EQ(simulation.scheduler().report(AppId{flow}, by).integer("deadline_misses"), 0U);
      latest = std::max(latest, static_cast<double>((watch.last_end - start).count()) /
                                    static_cast<double>((by - start).count()));
    }
    ASSERT_LE(simulation.worst_lateness(), kRounding) << "seed " << seed;
  }
  std::cout << "seeds from " << kSeed << ": the latest used " << latest << " of its time\n";
  EXPECT_GT(latest, 0.9);
}

TEST(Edf, APromiseThatIsOverLeavesItsCapacityToOthers) {
  PromiseSimulation simulation(settings_of(1, 1000), kEdfCapacity, 1);
  ASSERT_TRUE(simulation.set_share(0, finish(8'000'000, TimePoint{} + 10s)));
  ASSERT_TRUE(simulation.set_share(
      2, {.burst = {1000}, .finish_bytes = {1000}, .finish_by = TimePoint{} + 10s}));
  EXPECT_FALSE(simulation.set_share(1, curve(1000, 500'000, 1s)));
  simulation.skip_to(TimePoint{} + 10s - 1ns);
  EXPECT_FALSE(simulation.set_share(1, curve(1000, 500'000, 1s)));
  simulation.skip_to(TimePoint{} + 10s);
  EXPECT_TRUE(simulation.set_share(1, curve(1000, 900'000, 1s))) << "though it never came";
  const auto report = [&](std::uint32_t flow) {
    return simulation.scheduler().report(AppId{flow}, simulation.now());
  };
  EXPECT_EQ(report(0).get<bool>("promised"), false) << "its target stays";
  EXPECT_EQ(report(2).get<bool>("promised"), std::nullopt) << "it has none";
}

TEST(Edf, AskingAgainForTheSameBytesChangesNothing) {
  PromiseSimulation simulation(settings_of(1, 1000), kEdfCapacity, 1);
  const Share share = finish(8'000'000, TimePoint{} + 10s);
  ASSERT_TRUE(simulation.set_share(0, share));
  simulation.skip_to(TimePoint{} + 9s);  // most of them are done
  EXPECT_TRUE(simulation.set_share(0, share));
  EXPECT_FALSE(simulation.set_share(0, finish(8'000'001, TimePoint{} + 10s)));
}

TEST(Edf, APromiseBeginsWhenItIsGiven) {
  PromiseSimulation simulation(settings_of(1, 1000), kEdfCapacity, 1);
  ASSERT_TRUE(simulation.set_share(0, {}));
  ASSERT_TRUE(simulation.set_share(1, curve(19'000, 1000, 20ms)));
  for (int i = 0; i < 900; ++i) simulation.arrive(0, TimePoint{} + 1ms, 1000);
  simulation.run_until(TimePoint{} + 500ms);
  ASSERT_TRUE(simulation.set_share(0, curve(9'000, 1000, 30ms)));
  for (int i = 0; i < 19; ++i) simulation.arrive(1, simulation.now(), 1000);
  simulation.run_until(TimePoint{} + 2s);
  EXPECT_EQ(simulation.watch(1).misses, 0U) << "what waited longer is not more urgent";
  EXPECT_LE(simulation.worst_lateness(), kRounding);
  EXPECT_EQ(simulation.scheduler().report(AppId{0}, simulation.now()).integer("deadline_misses"),
            0U);
}

TEST(Edf, ASmallerBurstOwesNothingForALargerOne) {
  PromiseSimulation simulation(settings_of(1, 1000), kEdfCapacity, 1);
  ASSERT_TRUE(simulation.set_share(0, curve(900'000, 1000, 1s)));
  ASSERT_TRUE(simulation.set_share(1, {}));
  for (int i = 0; i < 900; ++i) simulation.arrive(0, TimePoint{}, 1000);
  simulation.run_until(TimePoint{} + 1s);
  ASSERT_TRUE(simulation.set_share(0, curve(5'000, 1000, 30ms)));
  simulation.flood(1, 5, 1000, 1000);
  simulation.run_until(TimePoint{} + 6s);
  for (int i = 0; i < 5; ++i) simulation.arrive(0, simulation.now(), 1000);
  simulation.run_until(TimePoint{} + 6s + 30ms);
  EXPECT_EQ(simulation.watch(0).requests, 905U);
  EXPECT_LE(simulation.worst_lateness(), kRounding);
}

// Old and new curves fit together, so no change makes a request late.
TEST(Edf, CurvesMayChangeComeAndGoWhileEveryoneIsBacklogged) {
  constexpr std::uint64_t kSeed = 100;
  double tightest = 0;
  for (std::uint64_t seed = kSeed; seed < kSeed + 250; ++seed) {
    Draw random(seed);
    const SchedulerSettings settings = settings_of(static_cast<std::uint32_t>(random(1, 8)), 1000);
    PromiseSimulation simulation(settings, kEdfCapacity, seed);
    const Cost ahead = settings.depth.requests * Cost{1000};
    Admission both(kEdfCapacity, ahead);
    const auto flows = static_cast<std::uint32_t>(random(2, 6));
    std::vector<Share> after;
    std::vector<TimePoint> when;
    for (std::uint32_t i = 0; i < 2 * flows; ++i) {
      Share share = curve(random(500, 20'000), random(1000, 600'000 / flows), 10s);
      ArrivalCurve asked = {share.burst.count, share.rate.count, share.latency};
      asked.latency = share.latency = both.least_latency(AppId{i}, asked).value_or(0s);
      both.admit(AppId{i}, asked);
      if (i < flows) {
        ASSERT_TRUE(simulation.set_share(i, random(0, 3) == 0 ? Share{} : share)) << seed;
        continue;
      }
      after.push_back(share);
      when.push_back(TimePoint{} + std::chrono::microseconds(random(1, 60'000)));
    }
    ASSERT_TRUE(simulation.set_share(flows, {}));
    for (std::uint32_t i = 0; i <= flows; ++i) {
      simulation.flood(i, static_cast<std::uint32_t>(random(1, 30)), 500, 1000);
    }
    for (;;) {
      const auto first = std::ranges::min_element(when);
      if (*first == TimePoint::max()) break;
      const auto flow = static_cast<std::uint32_t>(first - when.begin());
      simulation.run_until(std::exchange(*first, TimePoint::max()));
      if (random(0, 2) == 0) (void)simulation.withdraw_one(flow);
      if (random(0, 3) == 0) {
        simulation.remove(flow);
      } else {
        ASSERT_TRUE(simulation.set_share(flow, after[flow])) << "seed " << seed;
      }
    }
    simulation.run_until(TimePoint{} + 120ms);
    simulation.drain();
    ASSERT_LE(simulation.worst_lateness(), kRounding) << "seed " << seed;
    ASSERT_FALSE(simulation.idled()) << "seed " << seed;
    ASSERT_FALSE(simulation.out_of_order()) << "seed " << seed;
    ASSERT_EQ(simulation.scheduler().queued(), 0U);
    for (std::uint32_t flow = 0; flow < flows; ++flow) {
      ASSERT_LE(simulation.scheduler()
                    .report(AppId{flow}, simulation.now())
                    .get<Duration>("worst_tardiness"),
                kRounding)
          << "seed " << seed;
    }
    tightest = std::max(tightest, simulation.tightest());
  }
  std::cout << "seeds from " << kSeed << ": the tightest used " << tightest << "\n";
  EXPECT_GT(tightest, 0.9);
}

TEST(Edf, MissesAndTardinessAreCountedExactly) {
  constexpr std::uint64_t kSeed = 1000;
  std::uint64_t misses = 0;
  std::uint64_t kept = 0;
  for (std::uint64_t seed = kSeed; seed < kSeed + 150; ++seed) {
    Draw random(seed);
    // The server is slower than what the promises are made of.
    PromiseSimulation simulation(settings_of(static_cast<std::uint32_t>(random(1, 8)), 1000),
                                 random(kEdfCapacity / 10, kEdfCapacity), seed);
    ASSERT_TRUE(simulation.set_share(0, curve(100'000, 300'000, 200ms)));
    ASSERT_TRUE(simulation.set_share(1, curve(50'000, 300'000, 400ms)));
    ASSERT_TRUE(simulation.set_share(2, {.latency = 100ms}));
    ASSERT_TRUE(simulation.set_share(3, {}));
    for (std::uint32_t flow = 0; flow < 4; ++flow) {
      for (int i = 0; i < 3; ++i) {
        const TimePoint at = TimePoint{} + i * 300ms + std::chrono::milliseconds(random(0, 100));
        for (std::uint64_t n = random(0, 50); n > 0; --n) simulation.arrive(flow, at, 1000);
      }
    }
    simulation.drain();
    for (std::uint32_t flow = 0; flow < 4; ++flow) {
      const StatusFields report = simulation.scheduler().report(AppId{flow}, simulation.now());
      const PromiseSimulation::Watch& watch = simulation.watch(flow);
      if (flow == 3) {
        ASSERT_EQ(report.integer("deadline_misses"), std::nullopt) << "it has no target";
        continue;
      }
      ASSERT_EQ(report.integer("deadline_misses"), watch.misses)
          << "seed " << seed << ", flow " << flow;
      ASSERT_EQ(report.get<Duration>("worst_tardiness"), std::max(watch.worst_tardiness, 0ns))
          << "seed " << seed;
      misses += watch.misses;
      kept += watch.requests - watch.misses;
    }
    simulation.remove(0);
    ASSERT_TRUE(simulation.set_share(0, {.latency = 1s}));
    const StatusFields report = simulation.scheduler().report(AppId{0}, simulation.now());
    ASSERT_EQ(report.integer("deadline_misses"), 0U) << "another flow's";
    ASSERT_EQ(report.get<Duration>("worst_tardiness"), 0ns);
  }
  std::cout << "seeds from " << kSeed << ": " << misses << " missed, " << kept << " kept\n";
  EXPECT_GT(misses, 1000U);
  EXPECT_GT(kept, 1000U);
}

// A request past its deadline only waits for what curves claim: at most the requests at the server,
// the bursts, and the arrivals at the rates meanwhile.
TEST(Edf, AFlowWithoutATargetWaitsForNoMoreThanTheCurvesLeaveUnclaimed) {
  constexpr std::uint64_t kSeed = 2000;
  double longest = 0;
  for (std::uint64_t seed = kSeed; seed < kSeed + 150; ++seed) {
    Draw random(seed);
    SchedulerSettings settings = settings_of(static_cast<std::uint32_t>(random(1, 8)), 1000);
    settings.own.of<EdfSettings>().default_latency = std::chrono::milliseconds(random(1, 50));
    PromiseSimulation simulation(settings, kEdfCapacity, seed);
    const Cost ahead = settings.depth.requests * Cost{1000};
    const std::uint64_t flows = random(1, 4);
    Cost bursts = 0;
    std::uint64_t rates = 0;
    for (std::uint32_t flow = 1; flow <= flows; ++flow) {
      const Share share = curve(random(1000, 20'000), random(1, 950'000 / flows), 1s);
      ASSERT_TRUE(simulation.set_share(flow, share)) << "seed " << seed;
      bursts += share.burst.count;
      rates += share.rate.count;
    }
    ASSERT_TRUE(simulation.set_share(0, {}));
    for (std::uint32_t flow = 1; flow <= flows; ++flow) simulation.flood(flow, 10, 500, 1000);
    simulation.flood(0, 1, 500, 1000);
    simulation.run_until(TimePoint{} + 300ms);
    const double seconds =
        static_cast<double>(ahead + bursts) / static_cast<double>(kEdfCapacity - rates) +
        static_cast<double>(ahead) / static_cast<double>(kEdfCapacity);
    const Duration bound = settings.own.of<EdfSettings>().default_latency +
                           Duration(static_cast<std::int64_t>(seconds * 1e9));
    ASSERT_LE(simulation.watch(0).longest, bound) << "seed " << seed;
    ASSERT_GT(simulation.watch(0).requests, 0U) << "seed " << seed;
    longest = std::max(longest, static_cast<double>(simulation.watch(0).longest.count()) /
                                    static_cast<double>(bound.count()));
  }
  std::cout << "seeds from " << kSeed << ": the longest wait was " << longest << " of the bound\n";
}

TEST(Edf, DecidesAtExtremeTimes) {
  for (const Duration at :
       {0ns, 1ns, Duration(std::int64_t{1} << 61), Duration(std::int64_t{1} << 62)}) {
    SchedulerSettings settings = settings_of(2, kMaxCost);
    settings.own.of<EdfSettings>().capacity = Share::kMaxRate;
    settings.own.of<EdfSettings>().default_latency = Duration::max();
    PromiseSimulation simulation(settings, Share::kMaxRate, 1);
    simulation.skip_to(TimePoint{} + at);
    ASSERT_TRUE(simulation.set_share(0, curve(1, 1, Duration::max())));
    ASSERT_TRUE(simulation.set_share(1, curve(kMaxCost, Share::kMaxRate / 2, 10ms)));
    ASSERT_TRUE(simulation.set_share(2, {.latency = Duration::max()}));
    ASSERT_TRUE(simulation.set_share(3, {}));
    ASSERT_TRUE(simulation.set_share(4, finish(kMaxCost, TimePoint::max(), 1)));
    for (std::uint32_t flow = 0; flow < 5; ++flow) {
      for (int i = 0; i < 20; ++i)
        simulation.arrive(flow, simulation.now(), i % 2 == 0 ? 1 : kMaxCost);
    }
    simulation.drain();
    for (std::uint32_t flow = 0; flow < 5; ++flow) {
      EXPECT_EQ(simulation.watch(flow).requests, 20U);
      EXPECT_EQ(simulation.scheduler()
                    .report(AppId{flow}, simulation.now())
                    .integer("deadline_misses")
                    .value_or(0),
                0U);
    }
    EXPECT_FALSE(simulation.idled());
    EXPECT_FALSE(simulation.out_of_order());
  }
}

}  // namespace
}  // namespace vpfs
