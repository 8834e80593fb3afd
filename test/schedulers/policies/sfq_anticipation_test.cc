// Anticipation in virtual time: shares of flows that cannot keep a queue (docs/schedulers.md).
#include <algorithm>
#include <iostream>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/anticipation.h"
#include "schedulers/policies/registry.h"
#include "test/schedulers/policies/anticipating.h"
#include "test/support/allocation_count.h"
#include "test/support/drift_watch.h"
#include "test/support/simulation/anticipation_study.h"
#include "test/support/simulation/flow_simulation.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

constexpr double kMaxLossPart = 0.1;

FlowWork work(std::uint32_t weight, std::uint32_t in_flight, Duration think = {}) {
  return {.share = {.weight = weight},
          .outstanding = in_flight,
          .least_size = 256 * kKiB,
          .most_size = 256 * kKiB,
          .think = think};
}

constexpr sim::Device::Settings kServer = {.parallelism = 1, .cost_per_second = 256 * kMiB};

// The bytes of each flow in `length`, after `warm_up`.
std::vector<double> served(FlowSimulation& simulation, std::uint32_t flows, Duration warm_up,
                           Duration length) {
  simulation.run(warm_up);
  std::vector<double> bytes;
  for (std::uint32_t i = 0; i < flows; ++i)
    bytes.push_back(static_cast<double>(simulation.done(i)));
  simulation.run(length);
  for (std::uint32_t i = 0; i < flows; ++i) {
    bytes[i] = static_cast<double>(simulation.done(i)) - bytes[i];
  }
  return bytes;
}

// A part of the study: a quarter of a minute for all of it.
TEST(SfqAnticipation, ReachesTheFeasibleRatioOrSpendsWhatItMay) {
  const AnticipationStudy study = {.requests = 6'000};
  int met = 0;
  int at_bound = 0;
  int rows = 0;
  for (const AnticipationCase& of : all_anticipation_cases()) {
    if (of.in_flight_b != 64 || of.size % kMiB != 0 || of.size > kMiB) continue;
    if (of.think != 200us && of.think != 5ms) continue;
    const AnticipationRow row = study.run(of);
    ++rows;
    if (row.is_met()) {
      ++met;
    } else if (row.is_at_bound(kMaxLossPart)) {
      ++at_bound;
    } else {
      std::cout << "missed: parallelism " << of.parallelism << " think " << of.think / 1us
                << " us, weight " << of.weight << ", in flight " << of.in_flight_a << ": "
                << row.ratio_on << " of " << row.feasible_ratio << ", total " << row.total_vs_fifo
                << "\n";
    }
    EXPECT_GE(row.total_vs_fifo, 1 - kMaxLossPart - 0.01);
    EXPECT_GE(row.ratio_on,
              row.is_at_bound(kMaxLossPart) ? row.ratio_off : 0.85 * row.feasible_ratio);
  }
  std::cout << met << " of " << rows << " rows within 5 %, " << at_bound << " at the bound\n";
  EXPECT_GE((met + at_bound) * 100, rows * 85);
}

// A thousand requests are what a slow server does in some seconds.
TEST(SfqAnticipation, IsThereAfterAThousandRequests) {
  const AnticipationStudy study = {.requests = 1'000};
  int met = 0;
  int rows = 0;
  for (const AnticipationCase& of : all_anticipation_cases()) {
    if (of.in_flight_b != 64 || of.size != kMiB || of.think > 1ms) continue;
    const AnticipationRow row = study.run(of);
    ++rows;
    met += row.is_met() || row.is_at_bound(kMaxLossPart) ? 1 : 0;
    EXPECT_GE(row.ratio_on, 0.5 * row.feasible_ratio)
        << "parallelism " << of.parallelism << " think " << of.think / 1us << " us, weight "
        << of.weight << ", in flight " << of.in_flight_a;
  }
  std::cout << met << " of " << rows << " rows\n";
  EXPECT_GE(met * 100, rows * 70);
}

// Clients lose their processor now and then. That costs them no more than the moment.
TEST(SfqAnticipation, AClientThatIsLateAtTimesKeepsItsShare) {
  const AnticipationStudy study = {.late_one_in = 50, .requests = 10'000};
  for (const std::uint32_t parallelism : {1U, 4U}) {
    for (const Duration think : std::vector<Duration>{200us, 1ms}) {
      for (const std::uint32_t weight : {1U, 4U}) {
        const AnticipationRow row = study.run(
            {.weight = weight, .size = 256 * kKiB, .parallelism = parallelism, .think = think});
        EXPECT_GE(row.ratio_on,
                  row.is_at_bound(kMaxLossPart) ? row.ratio_off : 0.9 * row.feasible_ratio)
            << "parallelism " << parallelism << ", think " << think / 1us << " us, weight "
            << weight;
        EXPECT_GE(row.total_vs_fifo, 1 - kMaxLossPart - 0.01);
      }
    }
  }
}

// Copies of many files, one request at a time: a new file takes much longer to begin than the next
// request of the same one. The others use that time, and the claim is there for what was missed.
TEST(SfqAnticipation, AClientThatPausesForEachFileKeepsItsShare) {
  for (const Duration gap : std::vector<Duration>{20ms, 40ms}) {
    for (const Duration think : std::vector<Duration>{200us, 1ms}) {
      const auto scheduler = anticipating(8);
      FlowWork copies = work(1, 1, think);
      copies.least_size = copies.most_size = kMiB;
      copies.think_spread = think / 2;
      copies.late_one_in = 64;
      copies.late = gap;
      FlowWork others = work(1, 16);
      others.least_size = others.most_size = kMiB;
      FlowSimulation simulation(*scheduler, {.cost_per_second = 200 * kMiB}, {copies, others}, 1);
      const std::vector<double> bytes = served(simulation, 2, 5s, 60s);
      EXPECT_NEAR(bytes[0] / bytes[1], 0.97, 0.03)
          << "gap " << gap / 1ms << " ms, think " << think / 1us << " us";
      EXPECT_GE(bytes[0] + bytes[1], 0.96 * 60 * 200 * kMiB);
    }
  }
}

// Here all requests are at the server for most of the time, so none waits when the work that was
// kept back is missed.
TEST(SfqAnticipation, TheLossIsBoundedAlsoWhereHardlyAnythingWaits) {
  for (const std::uint32_t max_loss : {20U, 100U}) {
    for (const double spread : {0.0, 0.5}) {
      for (const std::uint32_t in_flight : {1U, 2U, 4U}) {
        const AnticipationStudy study = {.max_loss = max_loss, .spread = spread};
        const AnticipationRow row = study.run({.in_flight_a = in_flight,
                                               .in_flight_b = 16,
                                               .size = 64 * kKiB,
                                               .parallelism = 16,
                                               .think = 200us});
        EXPECT_GE(row.total_vs_fifo, 1 - max_loss / 1000.0 - 0.005)
            << max_loss << ", spread " << spread << ", in flight " << in_flight;
      }
    }
  }
}

TEST(SfqAnticipation, ChangesNothingWhereBothKeepQueues) {
  for (const std::uint32_t weight : {1U, 2U, 8U}) {
    std::vector<double> bytes[2];
    for (const bool on : {false, true}) {
      const auto scheduler = anticipating(4, 100, on);
      FlowSimulation simulation(*scheduler, kServer, {work(weight, 16), work(1, 64)}, 1);
      bytes[on ? 1 : 0] = served(simulation, 2, 1s, 20s);
    }
    EXPECT_EQ(bytes[0], bytes[1]);
  }
}

TEST(SfqAnticipation, WithoutALossOnlyClaimsAreKept) {
  const auto scheduler = anticipating(4, 0);
  FlowSimulation simulation(*scheduler, kServer, {work(1, 1, 200us), work(1, 16)}, 1);
  const std::vector<double> bytes = served(simulation, 2, 1s, 10s);
  EXPECT_NEAR(bytes[0] + bytes[1], 10.0 * 256 * kMiB, 4.0 * kMiB);
  EXPECT_FALSE(scheduler->server(simulation.now()).get<Duration>("slots_kept").has_value());
}

// (a) alone makes the first request of a flow go before others if it is behind: with depth 1 that
// is all that there is.
TEST(SfqAnticipation, AFlowThatComesBackGoesOnFromItsLastFinishTag) {
  // With think times of a tenth of a request both have the server half of the time if claims count.
  for (const std::uint32_t weight : {1U, 4U}) {
    const auto scheduler = anticipating(1, 0);
    FlowSimulation simulation(*scheduler, kServer, {work(weight, 2, 100us), work(1, 16)}, 1);
    const std::vector<double> bytes = served(simulation, 2, 1s, 20s);
    EXPECT_NEAR(bytes[0] / bytes[1], weight, 0.05 * weight);
  }
}

// The bound of docs/schedulers.md: that of SFQ(D), and what a flow may be behind.
TEST(SfqAnticipation, TheBoundHoldsOverEveryIntervalWhereBothAreBacklogged) {
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&](std::uint64_t least, std::uint64_t most) {
      return least + random() % (most - least + 1);
    };
    const auto depth = static_cast<std::uint32_t>(std::uint64_t{1} << draw(0, 5));
    std::vector<FlowWork> flows;
    std::vector<std::uint32_t> weights;
    for (int i = 0; i < 2; ++i) {
      FlowWork flow = work(static_cast<std::uint32_t>(draw(1, 40)),
                           static_cast<std::uint32_t>(draw(0, 1) == 0 ? draw(1, 6) : draw(16, 90)));
      flow.least_size = flow.most_size = 4 * kKiB << draw(0, 8);
      if (draw(0, 1) == 0) flow.think = std::chrono::microseconds(draw(1, 3000));
      flow.think_spread = flow.think / 2;
      weights.push_back(flow.share.weight);
      flows.push_back(flow);
    }
    const auto scheduler = anticipating(depth);
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
    simulation.run_requests(3000);
    // What a flow may be behind counts in requests of the flow that moves v the most.
    double largest = 0;
    double both = 0;
    for (const FlowWork& flow : flows) {
      const double step = static_cast<double>(flow.most_size) / flow.share.weight;
      largest = std::max(largest, step);
      both += step;
    }
    const double behind = Anticipation::kMostBehind * largest / both;
    const double part = watch.worst() / (depth + 1 + behind);
    worst = std::max(worst, part);
    EXPECT_LE(part, 1.0) << "seed " << seed;
  }
  std::cout << "worst drift " << worst << " of the bound\n";
}

// A client that works in bursts, and pauses between them for as long as it is still expected or
// longer, gets no more than its weight gives it, and not much more than without anticipation.
TEST(SfqAnticipation, NoFlowGainsByPausing) {
  for (const Duration pause : std::vector<Duration>{500us, 2ms, 8ms, 20ms, 60ms}) {
    for (const std::uint32_t in_flight : {1U, 4U, 16U}) {
      const auto scheduler = anticipating(8);
      FlowWork pauses = work(1, in_flight);
      pauses.active = 20ms;
      pauses.pause = pause;
      FlowSimulation simulation(*scheduler, kServer, {pauses, work(1, 32)}, 1);
      const std::vector<double> bytes = served(simulation, 2, 2s, 20s);
      EXPECT_LE(bytes[0] / bytes[1], 1.01) << "pause " << pause / 1us << ", " << in_flight;
      EXPECT_GE(bytes[0] + bytes[1], (1 - kMaxLossPart - 0.01) * 20 * 256 * kMiB);
    }
  }
}

TEST(SfqAnticipation, AFlowThatStaysAwayDoesNotHoldOthersUp) {
  const auto scheduler = anticipating(4);
  FlowWork leaves = work(100, 1, 200us);
  leaves.active = 3s;
  leaves.pause = 1h;
  FlowSimulation simulation(*scheduler, kServer, {leaves, work(1, 16)}, 1);
  simulation.run(3s);
  const Cost before = simulation.done(1);
  simulation.run(1s);
  EXPECT_NEAR(static_cast<double>(simulation.done(1) - before), 256.0 * kMiB, 3.0 * kMiB);
}

TEST(SfqAnticipation, AThousandFlowsWithOneRequestEachAreFairAndLoseNothing) {
  const auto scheduler = anticipating(16);
  std::vector<FlowWork> flows;
  for (std::uint32_t i = 0; i < 1000; ++i) flows.push_back(work(1 + i % 2, 1, 500us));
  FlowSimulation simulation(*scheduler, {.parallelism = 4, .cost_per_second = 1000 * kMiB}, flows,
                            1);
  const std::vector<double> bytes = served(simulation, 1000, 2s, 40s);
  double sum = 0;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    sum += bytes[i];
    // 107 or 53 requests, give or take one or two.
    EXPECT_NEAR(bytes[i] / (256 * kKiB), 106.67 * (1 + i % 2), 3) << i;
  }
  EXPECT_GE(sum, 0.999 * 40 * 1000 * kMiB);
}

TEST(SfqAnticipation, SaysForWhichFlowASlotIsKept) {
  const auto scheduler = anticipating(4);
  FlowSimulation simulation(*scheduler, kServer, {work(8, 1, 400us), work(1, 16)}, 1);
  int kept = 0;
  for (int i = 0; i < 100'000 && kept < 10; ++i) {
    simulation.run(50us);
    if (simulation.queued(1) == 0) continue;
    const WaitReason why = scheduler->why_waiting(AppId{1}, simulation.now());
    if (why.reason != kSlotIsKept) continue;
    ++kept;
    EXPECT_EQ(why.kept_for, AppId{0});
  }
  EXPECT_EQ(kept, 10);
  const StatusFields flow = scheduler->report(AppId{0}, simulation.now());
  EXPECT_NEAR(static_cast<double>(flow.get<Duration>("think_time").value().count()), 400e3, 4e3);
  EXPECT_EQ(flow.integer("most_in_flight"), 1);
  EXPECT_GT(flow.get<Duration>("slots_kept").value(), Duration::zero());
  EXPECT_EQ(scheduler->server(simulation.now()).get<Duration>("slots_kept"),
            flow.get<Duration>("slots_kept"));
}

TEST(SfqAnticipation, TheNextFlowOfANumberInheritsNothing) {
  const auto scheduler = anticipating(4);
  FlowSimulation simulation(*scheduler, kServer, {work(8, 1, 400us), work(1, 16)}, 1);
  simulation.run(2s);
  ASSERT_TRUE(scheduler->report(AppId{0}, simulation.now()).get<bool>("comes_back_as_expected"));
  scheduler->remove(AppId{0}, simulation.now());
  EXPECT_TRUE(scheduler->report(AppId{0}, simulation.now()).empty());
  EXPECT_EQ(scheduler->server(simulation.now()).integer("expected_flows"), 0);
}

TEST(SfqAnticipation, LimitsAndMinimumsHoldBesideIt) {
  const auto scheduler = anticipating(4);
  FlowWork limited = work(1, 1, 200us);
  limited.share.rate = {20 * kMiB};
  limited.share.burst = {512 * kKiB};
  FlowWork promised = work(1, 8);
  promised.share.min = {100 * kMiB};
  FlowSimulation simulation(*scheduler, kServer, {work(20, 1, 200us), limited, promised}, 1);
  const std::vector<double> bytes = served(simulation, 3, 2s, 20s);
  EXPECT_LE(bytes[1], 20.0 * 20 * kMiB + 512 * kKiB);
  EXPECT_GE(bytes[1], 20.0 * 6 * kMiB) << "its weight's part of what the minimum leaves";
  EXPECT_GE(bytes[2], 0.98 * 20.0 * 100 * kMiB);
}

TEST(SfqAnticipation, ADepthThatFindsItselfIsNotDisturbedByClaims) {
  double total[2] = {};
  for (const bool on : {false, true}) {
    SchedulerSettings settings = {.auto_depth = AutoDepth{}};
    settings.own.set(AnticipationSettings{.on = on, .max_loss = 0});
    const auto scheduler = make_scheduler("sfq", settings).value();
    FlowSimulation simulation(*scheduler, {.parallelism = 4, .cost_per_second = 256 * kMiB},
                              {work(1, 1, 1ms), work(1, 64)}, 1);
    const std::vector<double> bytes = served(simulation, 2, 20s, 20s);
    total[on ? 1 : 0] = bytes[0] + bytes[1];
  }
  EXPECT_GE(total[1], 0.98 * total[0]);
}

// While a slot is kept, a minimum may fall due and a limit may allow its head.
TEST(SfqAnticipation, WhatFallsDueWhileASlotIsKeptGoesInTime) {
  FlowWork promised = work(1, 8);
  promised.share.min = {40 * kMiB};
  FlowWork limited = work(100, 4);
  limited.share.rate = {30 * kMiB};
  limited.share.burst = {256 * kKiB};
  FlowWork late = work(20, 1, 2ms);
  late.late_one_in = 8;
  for (const FlowWork& third : {promised, limited}) {
    const auto scheduler = anticipating(4, 500);
    FlowSimulation simulation(*scheduler, kServer, {late, work(1, 16), third}, 1);
    simulation.run(10s);
    EXPECT_GT(scheduler->server(simulation.now()).get<Duration>("slots_kept"), 100ms);
    EXPECT_EQ(simulation.late_answers(), 0U);
  }
}

TEST(SfqAnticipation, AWeightThatChangesTakesNoSlotAway) {
  const auto scheduler = anticipating(4);
  FlowSimulation simulation(*scheduler, kServer, {work(8, 1, 400us), work(1, 16)}, 1);
  simulation.run(2s);
  int expected = 0;
  for (int i = 0; i < 100; ++i) {
    simulation.run(330us);
    const auto expects = [&] {
      return scheduler->server(simulation.now()).integer("expected_flows");
    };
    const auto before = expects();
    expected += before == 1 ? 1 : 0;
    for (const std::uint32_t app : {0U, 1U}) {
      ASSERT_TRUE(scheduler->set_share(AppId{app}, {.weight = app == 0 ? 8U : 1U}, simulation.now())
                      .has_value());
    }
    EXPECT_EQ(expects(), before);
  }
  EXPECT_GT(expected, 50);
}

TEST(SfqAnticipation, AllocatesNothing) {
  const auto scheduler = anticipating(4);
  const auto set = [&](std::uint32_t app) {
    ASSERT_TRUE(scheduler->set_share(AppId{app}, {.weight = 1 + app * 7}, {}).has_value());
  };
  set(0);
  set(1);
  IoRequest requests[18];
  std::vector<IoRequest*> outstanding;
  outstanding.reserve(32);
  TimePoint now = TimePoint{} + 1s;
  const std::uint64_t before = allocation_count();
  for (std::uint32_t i = 0; i < 17; ++i) {
    requests[i] = {.app = AppId{0}, .cost = 64 * kKiB, .arrival = now};
    scheduler->enqueue(requests[i], now);
  }
  IoRequest& thinks = requests[17];
  bool is_away = true;
  for (int i = 0; i < 20'000; ++i) {
    now += 50us;
    if (is_away && i % 7 == 0) {
      thinks = {.app = AppId{1}, .cost = 64 * kKiB, .arrival = now};
      scheduler->enqueue(thinks, now);
      is_away = false;
    }
    while (IoRequest* const request = scheduler->next(now).request) outstanding.push_back(request);
    if (outstanding.empty()) continue;
    IoRequest* const done = outstanding.front();
    outstanding.erase(outstanding.begin());
    scheduler->complete(*done, done->cost, now);
    if (done == &thinks) {
      is_away = true;
    } else {
      done->arrival = now;
      scheduler->enqueue(*done, now);
    }
  }
  EXPECT_EQ(allocation_count(), before);
  EXPECT_GT(scheduler->server(now).get<Duration>("slots_kept").value(), Duration::zero());
}

// Flows with limits, with minimums, in debt and with neither, some of which think.
TEST(SfqAnticipation, AllocatesNothingBesideLimitsMinimumsAndDebts) {
  constexpr std::uint32_t kFlows = 200;
  const auto scheduler = anticipating(8);
  TimePoint now = TimePoint{} + 1s;
  const auto set = [&](std::uint32_t flow) {
    Share share = {.weight = 1 + flow % 50};
    if (flow % 5 == 1) share.rate = {4 * kMiB};
    if (flow % 5 == 2) share.min = {kMiB};
    ASSERT_TRUE(scheduler->set_share(AppId{flow}, share, now).has_value());
    // Room for what reports will need.
    scheduler->served_elsewhere(AppId{flow}, 0, 10ms, now);
  };
  for (std::uint32_t flow = 0; flow < kFlows; ++flow) set(flow);
  std::vector<IoRequest> requests(2 * std::size_t{kFlows});
  std::vector<IoRequest*> away;
  std::vector<IoRequest*> at_server;
  away.reserve(requests.size());
  at_server.reserve(requests.size());
  for (std::uint32_t i = 0; i < requests.size(); ++i) {
    requests[i] = {.app = AppId{i % kFlows}, .cost = 64 * kKiB};
    away.push_back(&requests[i]);
  }
  std::mt19937_64 random(1);
  const std::uint64_t before = allocation_count();
  std::uint64_t sent = 0;
  for (int i = 0; i < 50'000; ++i) {
    now += 50us;
    // Half of the flows return in the order in which they were answered, after about as long.
    for (int more = 0; more < 2 && away.size() > requests.size() / 4; ++more) {
      IoRequest& request = *away.front();
      away.erase(away.begin());
      request.arrival = now;
      scheduler->enqueue(request, now);
    }
    while (IoRequest* const request = scheduler->next(now).request) {
      at_server.push_back(request);
      ++sent;
    }
    if (!at_server.empty()) {
      IoRequest* const done = at_server.front();
      at_server.erase(at_server.begin());
      scheduler->complete(*done, random() % 4 == 0 ? done->cost / 2 : done->cost, now);
      away.push_back(done);
    }
    const auto flow = static_cast<std::uint32_t>(random() % kFlows);
    if (i % 10 == 0) scheduler->served_elsewhere(AppId{flow}, random() % kMiB, 10ms, now);
    if (i % 1000 == 0) (void)scheduler->set_share(AppId{flow}, {.weight = 1 + flow % 50}, now);
  }
  EXPECT_EQ(allocation_count(), before);
  EXPECT_GT(sent, 30'000U);
  EXPECT_GT(scheduler->server(now).get<Duration>("slots_kept").value(), Duration::zero());
}

}  // namespace
}  // namespace vpfs
