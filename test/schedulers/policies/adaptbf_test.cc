#include "schedulers/policies/adaptbf.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>
#include <string_view>

#include <gtest/gtest.h>

#include "test/schedulers/capacities.h"
#include "test/schedulers/draw.h"
#include "test/support/simulation/job_simulation.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kNoFaults;

// A capacity of zero: measured.
SchedulerSettings settings_of(std::uint64_t capacity, Duration period = 100ms) {
  SchedulerSettings settings;
  settings.depth.requests = 8;
  settings.own.of<AdapTbfSettings>().period = period;
  settings.own.of<AdapTbfSettings>().capacity.configured = capacity;
  return settings;
}

sim::Device::Settings server(std::uint64_t speed = kServerSpeed) {
  return {.parallelism = 2, .cost_per_second = speed};
}

// The largest relative error of any job's service over `time`, against its part by nodes.
double worst_error(JobSimulation& simulation, const std::vector<std::uint64_t>& nodes,
                   Duration time) {
  std::vector<Cost> before;
  double all_nodes = 0;
  for (std::uint32_t job = 0; job < nodes.size(); ++job) {
    before.push_back(simulation.done(job));
    all_nodes += static_cast<double>(nodes[job]);
  }
  const Cost all_before = simulation.done();
  simulation.run_for(time);
  const auto all = static_cast<double>(simulation.done() - all_before);
  double worst = 0;
  for (std::uint32_t job = 0; job < nodes.size(); ++job) {
    const double due = all * static_cast<double>(nodes[job]) / all_nodes;
    worst = std::max(worst,
                     std::abs(static_cast<double>(simulation.done(job) - before[job]) / due - 1));
  }
  return worst;
}

// A job's service may be off by the content of its bucket (a quarter of a period's tokens), by its
// requests at the server at both ends, and by one request more.
TEST(AdapTbf, SharesFollowNodesWhileAllJobsAreBacklogged) {
  constexpr std::uint64_t kSeed = 1;
  double worst = 0;
  for (std::uint64_t seed = kSeed; seed < kSeed + 8; ++seed) {
    Draw random(seed);
    // Configured exactly, too low, too high, and measured.
    const std::uint64_t capacity =
        kServerSpeed * std::array<std::uint64_t, 4>{4, 3, 6, 0}[seed % 4] / 4;
    JobSimulation simulation(settings_of(capacity), server(), seed);
    std::vector<std::uint64_t> nodes;
    const std::uint64_t jobs = random(2, 6);
    for (std::uint32_t job = 0; job < jobs; ++job) {
      nodes.push_back(random(1, 10));
      simulation.set_job(job, nodes.back());
    }
    for (std::uint32_t job = 0; job < jobs; ++job)
      simulation.flood(job, 700, 64 * kKiB, 256 * kKiB);
    simulation.run_for(2s);
    const Cost before = simulation.done();
    const double error = worst_error(simulation, nodes, 5s);
    const auto expected = static_cast<double>(
        std::min<std::uint64_t>(capacity == 0 ? kServerSpeed : capacity, kServerSpeed));
    const double least_share = static_cast<double>(std::ranges::min(nodes)) /
                               static_cast<double>(std::reduce(nodes.begin(), nodes.end()));
    const double least = 5 * expected * least_share;
    const double off = 0.1 / 4 / 5 + 9.0 * 256 * kKiB / least;
    worst = std::max(worst, error / off);
    EXPECT_LT(error, off) << "seed " << seed;
    // A tenth of a second's budget is rounded down to a token.
    EXPECT_NEAR(static_cast<double>(simulation.done() - before) / 5 / expected, 1, 0.02)
        << "seed " << seed;
    EXPECT_EQ(simulation.faults(), kNoFaults) << "seed " << seed;
  }
  std::cout << "seeds from " << kSeed << ": worst error " << worst << " of what may be\n";
}

// A job whose requests do much more than was known of them does not get it for nothing.
TEST(AdapTbf, WhatARequestDidBeyondItsCostComesOutOfItsTokens) {
  SchedulerSettings settings = settings_of(kServerSpeed);
  settings.own.of<AdapTbfSettings>().work_conserving = false;
  const auto scheduler = make_scheduler("adaptbf", settings).value();
  TimePoint now(1s);
  EXPECT_TRUE(scheduler->set_share(AppId{0}, {}, now));
  std::array<IoRequest, 8> requests;
  const auto add = [&](IoRequest& request) {
    request.cost = 64 * kKiB;
    request.arrival = now;
    scheduler->enqueue(request, now);
  };
  for (IoRequest& each : std::span(requests).first(6)) add(each);
  (void)scheduler->next(now);
  now += 100ms;
  IoRequest* const request = scheduler->next(now).request;
  ASSERT_NE(request, nullptr);
  const std::int64_t before = *scheduler->report(AppId{0}, now).integer("tokens");
  scheduler->charge_more(*request, {.cost = kMiB, .size = {kMiB}}, now);
  EXPECT_EQ(*scheduler->report(AppId{0}, now).integer("tokens"), before - std::int64_t{kMiB});
}

// The used part of the budget by the equations alone, with a job that asks for `little` tokens in a
// period and one that always has 200 waiting. A lender's claims grow by more than it can use (eq.
// 13), so a part of the repayment stays idle.
double used_by_equations(std::uint64_t budget, std::uint64_t little) {
  AdapTbfAllocator allocator;
  std::uint64_t used = 0;
  std::uint64_t last = budget;
  for (int period = 0; period < 60; ++period) {
    const std::vector<AdapTbfAllocator::Demand> demands = {
        {.job = 0, .nodes = 4, .tokens = little}, {.job = 1, .nodes = 1, .tokens = last + 200}};
    last = std::min(allocator.allocate(demands, budget)[1].tokens, budget - little);
    if (period >= 10) used += last + little;
  }
  return static_cast<double>(used) / (50.0 * static_cast<double>(budget));
}

TEST(AdapTbf, AJobWithLittleDemandLendsAndIsPaidBack) {
  JobSimulation simulation(settings_of(kServerSpeed), server(), 1);
  simulation.set_job(0, 4);
  simulation.set_job(1, 1);
  simulation.trickle(0, 10ms, 64 * kKiB);  // 10 tokens in a period of 512
  simulation.flood(1, 200, 64 * kKiB, 64 * kKiB);
  simulation.run_for(1s);
  const Cost before = simulation.done();
  const Cost others = simulation.done(1);
  simulation.run_for(4s);
  const double expected = used_by_equations(640, 10);
  EXPECT_NEAR(static_cast<double>(simulation.done() - before) / (4.0 * kServerSpeed), expected,
              0.03);
  EXPECT_GT(simulation.done(1) - others, 2 * kServerSpeed * 4 / 5) << "twice what its node is";
  const std::int64_t lent = simulation.report(0).integer("record").value_or(0);
  EXPECT_GT(lent, 0);
  EXPECT_EQ(simulation.report(1).integer("record").value_or(0), -lent);
  EXPECT_EQ(simulation.report(0).integer("lent").value_or(0),
            simulation.report(1).integer("borrowed").value_or(0));
  const Loans loans = simulation.scheduler().loans(AppId{0});
  EXPECT_EQ(loans.lent - loans.borrowed, static_cast<Cost>(lent) * 64 * kKiB);
  EXPECT_EQ(loans.lent, simulation.scheduler().loans(AppId{1}).borrowed);
  EXPECT_EQ(simulation.scheduler().loans(AppId{7}), Loans());

  simulation.flood(0, 2000, 64 * kKiB, 64 * kKiB);
  simulation.flood(1, 2000, 64 * kKiB, 64 * kKiB);
  simulation.run_for(200ms);
  const Cost lender = simulation.done(0);
  const Cost debtor = simulation.done(1);
  simulation.run_for(1s);
  EXPECT_LT(simulation.report(0).integer("record").value_or(0), lent);
  EXPECT_GT(simulation.done(0) - lender, 4 * (simulation.done(1) - debtor)) << "above its share";
  EXPECT_GT(simulation.report(0).integer("borrowed").value_or(0), 0U);
  EXPECT_EQ(simulation.faults(), kNoFaults);
}

// The server is nearly used up when the lender's demand is near its share.
TEST(AdapTbf, TheTotalStaysNearTheCapacityWhenLittleIsLent) {
  JobSimulation simulation(settings_of(kServerSpeed), server(), 1);
  simulation.set_job(0, 1);
  simulation.set_job(1, 1);
  simulation.trickle(0, 400us, 64 * kKiB);  // 250 tokens in a period of 320
  simulation.flood(1, 2000, 64 * kKiB, 64 * kKiB);
  simulation.run_for(2s);
  const Cost before = simulation.done();
  simulation.run_for(5s);
  EXPECT_GT(simulation.done() - before, kServerSpeed * 5 * 85 / 100);
  EXPECT_LT(simulation.done() - before, kServerSpeed * 5 + kServerSpeed / 20);
  EXPECT_EQ(simulation.faults(), kNoFaults);
}

TEST(AdapTbf, AJobThatWasIdleIsServedWithoutABucketUntilThePeriodEnds) {
  JobSimulation simulation(settings_of(kServerSpeed / 2), server(), 1);
  simulation.set_job(0, 1);
  simulation.set_job(1, 1);
  simulation.flood(0, 100, 64 * kKiB, 64 * kKiB);
  simulation.run_until(TimePoint{} + 1010ms);
  EXPECT_EQ(simulation.report(1).integer("rate_now"), 0U);
  EXPECT_FALSE(simulation.report(1).integer("tokens"));
  simulation.flood(1, 100, 64 * kKiB, 64 * kKiB);
  const Cost first = simulation.done(0);
  simulation.run_until(TimePoint{} + 1090ms);
  // The capacity is half of the server's speed, and the job gets the idle half without tokens.
  EXPECT_GT(simulation.done(1), kServerSpeed / 2 * 70 / 1000);
  EXPECT_GT(simulation.done(0) - first, kServerSpeed / 2 * 70 / 1000)
      << "classes with tokens go first";
  EXPECT_EQ(simulation.report(1).integer("rate_now"), 0U);
  simulation.run_until(TimePoint{} + 1100ms);
  EXPECT_GT(simulation.report(1).integer("rate_now"), 0U);
  EXPECT_TRUE(simulation.report(1).integer("tokens"));
  EXPECT_EQ(simulation.faults(), kNoFaults);
}

TEST(AdapTbf, WithoutABudgetEveryoneIsServed) {
  JobSimulation simulation(settings_of(0), server(), 1);
  EXPECT_EQ(simulation.capacity(), 0U);
  simulation.set_job(0, 1);
  simulation.flood(0, 10, 64 * kKiB, 64 * kKiB);
  simulation.run_for(99ms);
  EXPECT_GT(simulation.done(0), kServerSpeed / 11);
  EXPECT_EQ(simulation.capacity_source(), "nothing measured yet");
}

// Each job has one token in a period, or none. A job without one is asked again when the period
// ends and gets one in its turn.
TEST(AdapTbf, AJobWithoutTokensIsNotStuck) {
  constexpr std::uint64_t kSeed = 50;
  for (std::uint64_t seed = kSeed; seed < kSeed + 30; ++seed) {
    Draw random(seed);
    const Duration period = std::array<Duration, 3>{1ms, 100ms, 2s}[seed % 3];
    SchedulerSettings settings = settings_of(0, period);
    settings.own.of<AdapTbfSettings>().token = 64 * kKiB;
    const std::uint64_t tokens = random(1, 3);
    const auto per_second =
        static_cast<double>(tokens * 64 * kKiB) * 1e9 / static_cast<double>(period.count());
    settings.own.of<AdapTbfSettings>().capacity.configured =
        static_cast<std::uint64_t>(per_second) + 1;
    JobSimulation simulation(settings, server(), seed);
    const std::uint64_t jobs = random(2, 5);
    for (std::uint32_t job = 0; job < jobs; ++job) {
      simulation.set_job(job, job == 0 ? 1 : random(1, 10));
    }
    for (std::uint32_t job = 0; job < jobs; ++job) {
      const Cost most = random(1, 4) * 64 * kKiB;
      simulation.flood(job, static_cast<std::uint32_t>(random(1, 20)), most / 2, most);
    }
    simulation.run_for(10 * period);
    const std::uint64_t before = simulation.requests(0);
    // One token in 41 periods at least, and four for the largest request.
    simulation.run_for(300 * period);
    EXPECT_GT(simulation.requests(0), before) << "seed " << seed;
    simulation.drain();
    EXPECT_EQ(simulation.faults(), kNoFaults) << "seed " << seed;
    EXPECT_EQ(simulation.scheduler().queued(), 0U);
  }
}

TEST(AdapTbf, TheMeasuredCapacityIsTheServersFromBothSides) {
  for (const std::uint64_t speed : {10 * kMiB, 100 * kMiB, 1000 * kMiB}) {
    for (const bool from_below : {true, false}) {
      const Cost request = speed / 1600;
      // The budget is whole tokens, so it follows the capacity only to within one token.
      SchedulerSettings settings = settings_of(0);
      settings.own.of<AdapTbfSettings>().token = request;
      JobSimulation simulation(settings, server(speed), 1);
      simulation.set_job(0, 1);
      simulation.set_job(1, 3);
      if (from_below) {
        simulation.trickle(0, 10ms, speed / 1000);
        simulation.run_for(2s);
        simulation.trickle(0, {}, 1);
        EXPECT_LT(simulation.capacity(), speed / 4);
      } else {
        simulation.set_speed(4000);
        simulation.flood(0, 100, request, request);
        simulation.run_for(2s);
        simulation.set_speed(1000);
        EXPECT_GT(simulation.capacity(), speed * 3);
      }
      simulation.flood(0, 200, request, request);
      simulation.flood(1, 200, request, request);
      simulation.run_for(3s);
      double lowest = 1e9;
      double highest = 0;
      for (int i = 0; i < 60; ++i) {
        simulation.run_for(100ms);
        const double ratio =
            static_cast<double>(simulation.capacity()) / static_cast<double>(speed);
        lowest = std::min(lowest, ratio);
        highest = std::max(highest, ratio);
      }
      std::cout << speed / kMiB << " MiB/s from " << (from_below ? "below: " : "above: ") << lowest
                << " to " << highest << "\n";
      EXPECT_GT(lowest, 0.95);
      EXPECT_LT(highest, 1.05);
      EXPECT_EQ(simulation.capacity_source(), "measured");
      EXPECT_EQ(simulation.faults(), kNoFaults);
    }
  }
}

TEST(AdapTbf, TheMeasuredCapacityFollowsAServerThatChangesItsSpeed) {
  JobSimulation simulation(settings_of(0), server(), 1);
  simulation.set_job(0, 1);
  simulation.set_job(1, 2);
  simulation.flood(0, 200, 64 * kKiB, 64 * kKiB);
  simulation.flood(1, 200, 64 * kKiB, 64 * kKiB);
  for (const std::uint64_t permille : {1000U, 250U, 2000U, 500U, 1000U}) {
    simulation.set_speed(permille);
    simulation.run_for(3s);
    const double expected = static_cast<double>(kServerSpeed * permille) / 1000;
    EXPECT_NEAR(static_cast<double>(simulation.capacity()) / expected, 1, 0.05) << permille;
  }
  EXPECT_EQ(simulation.faults(), kNoFaults);
}

// A measured capacity needs requests that are small against a job's tokens in a period: tokens that
// the server was too slow for last until the period ends, and a period of 1 ms has few.
TEST(AdapTbf, APeriodMayBeAMillisecondOrSeconds) {
  for (const Duration period : {Duration(1ms), Duration(2s)}) {
    for (const std::uint64_t capacity : {kServerSpeed, std::uint64_t{0}}) {
      SchedulerSettings settings = settings_of(capacity, period);
      settings.own.of<AdapTbfSettings>().token = 4 * kKiB;
      JobSimulation simulation(settings, server(), 1);
      const Cost request = period < 1s ? 16 * kKiB : 256 * kKiB;
      simulation.set_job(0, 1);
      simulation.set_job(1, 3);
      simulation.flood(0, 4000, request, request);
      simulation.flood(1, 4000, request, request);
      const Duration time = period < 1s ? 800ms : 10s;
      simulation.run_for(time);
      // A job has six requests in a millisecond, and one of them may not count.
      EXPECT_LT(worst_error(simulation, {1, 3}, time), period < 1s ? 0.06 : 0.03)
          << period.count() << " " << capacity;
      EXPECT_NEAR(static_cast<double>(simulation.capacity()) / kServerSpeed, 1, 0.05)
          << period.count();
      EXPECT_EQ(simulation.faults(), kNoFaults);
    }
  }
}

TEST(AdapTbf, RequestsMayBeLargerThanAPeriodsTokens) {
  SchedulerSettings settings = settings_of(kServerSpeed, 1ms);
  settings.own.of<AdapTbfSettings>().token = 16 * kKiB;
  JobSimulation simulation(settings, server(), 1);
  simulation.set_job(0, 1);
  simulation.set_job(1, 3);
  simulation.flood(0, 900, 4 * kMiB, 4 * kMiB);  // of 0.4 MiB a period
  simulation.flood(1, 900, 4 * kMiB, 4 * kMiB);
  simulation.run_for(5s);
  EXPECT_LT(worst_error(simulation, {1, 3}, 20s), 0.02);
  EXPECT_EQ(simulation.faults(), kNoFaults);
}

TEST(AdapTbf, TheMeasuredCapacityStaysWithinItsLimits) {
  for (const bool is_low : {true, false}) {
    SchedulerSettings settings = settings_of(0);
    settings.own.of<AdapTbfSettings>().capacity.least =
        is_low ? 2 * kServerSpeed : kServerSpeed / 8;
    settings.own.of<AdapTbfSettings>().capacity.most = is_low ? 4 * kServerSpeed : kServerSpeed / 2;
    JobSimulation simulation(settings, server(), 1);
    simulation.set_job(0, 1);
    simulation.flood(0, 200, 64 * kKiB, 64 * kKiB);
    simulation.run_for(5s);
    EXPECT_EQ(simulation.capacity(), is_low ? 2 * kServerSpeed : kServerSpeed / 2);
    EXPECT_EQ(simulation.capacity_source(),
              is_low ? "measured, at the lower limit" : "measured, at the upper limit");
  }
}

TEST(AdapTbf, NodesChangeAndJobsLeaveWhileEveryoneIsBacklogged) {
  JobSimulation simulation(settings_of(kServerSpeed), server(), 1);
  for (std::uint32_t job = 0; job < 3; ++job) simulation.set_job(job, 1);
  for (std::uint32_t job = 0; job < 3; ++job) simulation.flood(job, 200, 256 * kKiB, 256 * kKiB);
  simulation.run_for(2s);
  EXPECT_LT(worst_error(simulation, {1, 1, 1}, 5s), 0.02);
  simulation.set_job(1, 6);
  simulation.run_for(1s);
  EXPECT_LT(worst_error(simulation, {1, 6, 1}, 5s), 0.02);
  simulation.flood(0, 0, 1, 1);
  simulation.remove(0);
  simulation.run_for(2s);
  EXPECT_EQ(simulation.scheduler().flow(AppId{0}).queued, 0U) << "what it had queued has left";
  EXPECT_EQ(simulation.report(0).integer("record"), 0);
  EXPECT_EQ(simulation.report(0).integer("lent"), 0U);
  EXPECT_EQ(simulation.report(0).integer("borrowed"), 0U);
  simulation.set_job(0, 7);
  EXPECT_EQ(simulation.report(0).integer("record"), 0) << "another job's";
  simulation.flood(0, 200, 256 * kKiB, 256 * kKiB);
  simulation.run_for(2s);
  EXPECT_LT(worst_error(simulation, {7, 6, 1}, 5s), 0.02);
  EXPECT_EQ(simulation.faults(), kNoFaults);
}

TEST(AdapTbf, WhatARemovedJobLeftQueuedIsNotChargedToTheNextOneOfItsNumber) {
  JobSimulation simulation(settings_of(kServerSpeed), server(), 1);
  simulation.set_job(0, 1);
  simulation.set_job(1, 4);
  simulation.trickle(1, 10ms, 64 * kKiB);
  simulation.flood(0, 1000, 256 * kKiB, 256 * kKiB);
  simulation.run_for(1s);
  simulation.flood(0, 0, 1, 1);
  simulation.remove(0);
  EXPECT_EQ(simulation.report(0).integer("record"), 0);
  std::int64_t left = 0;
  while (simulation.scheduler().flow(AppId{0}).queued > 0) {
    simulation.run_for(1ms);
    left = simulation.report(0).integer("record").value_or(0);
  }
  EXPECT_LT(left, 0) << "it went on borrowing";
  simulation.set_job(0, 2);
  EXPECT_EQ(simulation.report(0).integer("record"), 0);
  EXPECT_EQ(simulation.report(0).integer("borrowed"), 0U);
  EXPECT_EQ(simulation.faults(), kNoFaults);
}

TEST(AdapTbf, NothingIsLostOrStuckWhateverJobsDo) {
  constexpr std::uint64_t kSeed = 3000;
  for (std::uint64_t seed = kSeed; seed < kSeed + 80; ++seed) {
    Draw random(seed);
    const Duration period = std::array<Duration, 4>{1ms, 10ms, 100ms, 2s}[random(0, 3)];
    SchedulerSettings settings =
        settings_of(random(0, 1) == 0 ? 0 : random(1, 1000) * kMiB, period);
    settings.depth.requests = static_cast<std::uint32_t>(random(1, 16));
    settings.own.of<AdapTbfSettings>().token = std::uint64_t{1} << random(0, 22);
    JobSimulation simulation(settings, server(random(1, 1000) * kMiB), seed);
    simulation.jump(std::chrono::milliseconds(random(0, 10'000)));
    const auto jobs = static_cast<std::uint32_t>(random(1, 6));
    for (std::uint32_t job = 0; job < jobs; ++job) simulation.set_job(job, random(0, 10));
    for (int i = 0; i < 30; ++i) {
      const auto job = static_cast<std::uint32_t>(random(0, jobs - 1));
      const Cost most = random(1, 4 * kMiB);
      switch (random(0, 6)) {
        case 0:
          simulation.flood(job, static_cast<std::uint32_t>(random(0, 10)), 1, most);
          break;
        case 1:
          simulation.trickle(job, period / 8 * static_cast<int>(random(0, 20)), most);
          break;
        case 2:
          simulation.remove(job);
          break;
        case 3:
          simulation.set_job(job, random(0, std::uint64_t{1} << random(0, 63)));
          break;
        case 4:
          simulation.arrive(job, most);
          break;
        case 5:
          if (simulation.scheduler().queued() + simulation.scheduler().outstanding() == 0) {
            simulation.jump(std::chrono::hours(random(1, 1000)));
          }
          break;
        default:
          simulation.run_for(period / 10 * static_cast<int>(random(0, 30)));
      }
    }
    simulation.drain();
    ASSERT_EQ(simulation.faults(), kNoFaults) << "seed " << seed;
    ASSERT_EQ(simulation.scheduler().queued() + simulation.scheduler().outstanding(), 0U)
        << "seed " << seed;
  }
}

// The first period after idle hours is like any that follows an idle one.
TEST(AdapTbf, TimeMayJumpByHours) {
  for (const std::uint64_t capacity : {kServerSpeed, std::uint64_t{0}}) {
    JobSimulation simulation(settings_of(capacity), server(), 1);
    simulation.set_job(0, 1);
    simulation.set_job(1, 3);
    for (int round = 0; round < 2; ++round) {
      simulation.flood(0, 400, 256 * kKiB, 256 * kKiB);
      simulation.flood(1, 400, 256 * kKiB, 256 * kKiB);
      simulation.run_for(2s);
      EXPECT_LT(worst_error(simulation, {1, 3}, 5s), 0.02) << "round " << round;
      simulation.drain();
      std::uint64_t measured = 0;  // with the last period in it
      for (int idle = 0; idle < 3; ++idle) {
        simulation.jump(1000h);
        simulation.arrive(0, 64 * kKiB);
        EXPECT_EQ(simulation.report(0).integer("rate_now"), 0U) << "neither has a bucket";
        EXPECT_EQ(simulation.report(1).integer("rate_now"), 0U);
        if (idle > 0) {
          EXPECT_EQ(simulation.capacity(), measured) << "idle time shows nothing";
        }
        measured = simulation.capacity();
        simulation.drain();
      }
    }
    EXPECT_EQ(simulation.faults(), kNoFaults);
  }
}

}  // namespace
}  // namespace vpfs
