// The promise of admission, over random workloads in virtual time (docs/schedulers.md): a data
// server of exactly the configured capacity misses no deadline of an admitted curve.
#include <algorithm>
#include <iostream>
#include <string>

#include <gtest/gtest.h>

#include "base/units.h"
#include "schedulers/policies/edf.h"
#include "test/schedulers/draw.h"
#include "test/support/simulation/promise_simulation.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

enum class Floods : std::uint8_t {
  none,
  others,    // flows without a promise
  everyone,  // these, flows with only a latency target, and some that have a promise
};

// The earliest arrivals that a curve allows, by its bucket.
class Bucket {
 public:
  Bucket(const Share& share, TimePoint from)
      : burst_(share.burst.count), rate_(share.rate.count), full_at_(from), from_(from) {}
  [[nodiscard]] TimePoint holds_at(Cost cost) const {
    return std::max(full_at_ - time_of(burst_ - cost), from_);
  }
  // Adds up to two nanoseconds, so that arrivals are inside the curve however the scheduler rounds.
  void take(Cost cost, TimePoint at) { full_at_ = std::max(full_at_, at) + time_of(cost) + 2ns; }

 private:
  [[nodiscard]] Duration time_of(Cost cost) const {
    return Duration(static_cast<std::int64_t>(static_cast<long double>(cost) * 1e9L /
                                              static_cast<long double>(rate_)));
  }

  std::uint64_t burst_;
  std::uint64_t rate_;
  TimePoint full_at_;
  TimePoint from_;
};

// A set of curves that set_share() admits, close to the limit, and the requests of their flows and
// others.
class PromisedWorkload {
 public:
  PromisedWorkload(std::uint64_t seed, Floods floods)
      : random_(seed),
        capacity_(random_(1, 1000) * 1'000'000 + random_(0, 999)),
        settings_(settings()),
        simulation_(settings_, capacity_, seed),
        floods_(floods) {
    const auto curves = static_cast<std::uint32_t>(random_(1, 8));
    while (flows_ < curves) add_curve();
    for (std::uint32_t flow = 0; flow < curves; ++flow) inside_.push_back(!flooding_curve(flow));
    if (floods_ != Floods::none) add_floods();
    add_arrivals();
  }

  PromiseSimulation& run() {
    simulation_.run_until(horizon_);
    simulation_.drain();
    return simulation_;
  }
  // Whether every arrival inside a curve was done by arrival + latency.
  [[nodiscard]] Duration worst_tardiness_inside() const {
    Duration worst = Duration::min();
    for (std::uint32_t flow = 0; flow < inside_.size(); ++flow) {
      const PromiseSimulation::Watch& watch = simulation_.watch(flow);
      if (inside_[flow] && watch.requests > 0) worst = std::max(worst, watch.worst_tardiness);
    }
    return worst;
  }
  [[nodiscard]] std::uint64_t reported_misses() {
    std::uint64_t misses = 0;
    for (std::uint32_t flow = 0; flow < inside_.size(); ++flow) {
      const StatusFields report = simulation_.scheduler().report(AppId{flow}, simulation_.now());
      if (report.get<Duration>("worst_tardiness") > PromiseSimulation::kRounding) {
        misses += static_cast<std::uint64_t>(report.integer("deadline_misses").value_or(0));
      }
    }
    return misses;
  }

 private:
  SchedulerSettings settings() {
    SchedulerSettings made;
    made.depth.requests = static_cast<std::uint32_t>(std::uint64_t{1} << random_(0, 6));
    made.own.of<EdfSettings>().largest_request = 64 * kKiB << random_(0, 6);
    if (random_(0, 2) == 0) made.depth.cost = random_(64 * kKiB, 32 * kMiB);
    made.own.of<EdfSettings>().capacity = capacity_;
    made.own.of<EdfSettings>().default_latency = std::chrono::milliseconds(random_(1, 1000));
    return made;
  }

  void add_curve() {
    const Cost largest = std::uint64_t{1} << random_(12, 16 + 6);
    request_.push_back(std::min(largest, settings_.own.of<EdfSettings>().largest_request));
    const Cost burst = request_.back() * random_(1, 8);
    const std::uint64_t rate = std::max<std::uint64_t>(rate_left_ * random_(2, 60) / 100, 1000);
    const double fill = static_cast<double>(burst) / static_cast<double>(capacity_);
    const Duration latency(
        static_cast<std::int64_t>(fill * 1e9 * static_cast<double>(random_(1, 40))));
    Share share = {.rate = {rate}, .burst = {burst}, .latency = std::max(latency, Duration(1us))};
    Result<void> admitted = simulation_.set_share(flows_, share);
    if (!admitted) {
      // A proposal in a refusal must be admitted.
      const std::string text = admitted.error().message;
      const std::size_t at = text.find(" is ");
      ASSERT_NE(at, std::string::npos) << text;
      const Result<Duration> possible = parse_duration(text.substr(at + 4));
      ASSERT_TRUE(possible) << text;
      share.latency = *possible;
      admitted = simulation_.set_share(flows_, share);
      ASSERT_TRUE(admitted) << text << ", then " << admitted.error().message;
    }
    rate_left_ -= std::min(rate_left_, rate);
    shares_.push_back(share);
    ++flows_;
  }

  bool flooding_curve(std::uint32_t flow) {
    return floods_ == Floods::everyone && flow > 0 && random_(0, 1) == 0;
  }

  void add_floods() {
    const Cost largest = settings_.own.of<EdfSettings>().largest_request;
    for (std::uint64_t i = random_(1, 3); i > 0; --i) {
      Share share;
      if (floods_ == Floods::everyone && i > 1) share.latency = Duration(1us);
      EXPECT_TRUE(simulation_.set_share(flows_, share));
      const auto in_flight =
          static_cast<std::uint32_t>(random_(1, std::uint64_t{2} * settings_.depth.requests));
      simulation_.flood(flows_, in_flight, random_(0, 1) == 0 ? largest : 1, largest);
      ++flows_;
    }
    for (std::uint32_t flow = 0; flow < inside_.size(); ++flow) {
      if (inside_[flow]) continue;
      // Includes requests larger than the burst.
      const Cost most = random_(0, 1) == 0 ? largest : request_[flow];
      simulation_.flood(flow, static_cast<std::uint32_t>(random_(1, 20)), 1 + most / 2, most);
    }
  }

  void add_arrivals() {
    const TimePoint together = TimePoint{} + std::chrono::microseconds(random_(0, 100'000));
    for (std::uint32_t flow = 0; flow < inside_.size(); ++flow) {
      if (!inside_[flow]) continue;
      const std::uint64_t pattern = random_(0, 2);
      TimePoint at = random_(0, 3) > 0
                         ? together
                         : TimePoint{} + std::chrono::microseconds(random_(0, 200'000));
      Bucket bucket(shares_[flow], at);
      for (int i = 0; i < 20; ++i) {
        const bool whole = pattern == 0 || random_(0, 1) == 0;
        const Cost cost = whole ? request_[flow] : random_(1, request_[flow]);
        const TimePoint possible = std::max(bucket.holds_at(cost), at);
        const auto rest = static_cast<std::uint64_t>(shares_[flow].latency.count());
        if (pattern == 1) at = possible + Duration(static_cast<std::int64_t>(rest / 10));
        if (pattern == 2 && random_(0, 4) == 0) {
          at = possible + Duration(static_cast<std::int64_t>(random_(0, rest)));
        }
        at = std::max(at, possible);
        bucket.take(cost, at);
        simulation_.arrive(flow, at, cost);
        horizon_ = std::max(horizon_, std::min(at, together + 2s));
      }
    }
    // Ends floods, so that each workload has at most some hundred requests.
    const double request = static_cast<double>(settings_.own.of<EdfSettings>().largest_request) / 2;
    const Duration enough(
        static_cast<std::int64_t>(100 * request / static_cast<double>(capacity_) * 1e9));
    horizon_ = std::min(horizon_, together + std::max(enough, Duration(1ms)));
  }

  Draw random_;
  std::uint64_t capacity_;
  SchedulerSettings settings_;
  PromiseSimulation simulation_;
  Floods floods_;
  std::uint64_t rate_left_ = capacity_;
  std::uint32_t flows_ = 0;
  std::vector<Share> shares_;
  std::vector<Cost> request_;  // the largest of a curve
  std::vector<bool> inside_;
  TimePoint horizon_ = {};
};

// Runs this many workloads; returns how near the tightest request came to its deadline.
double run_all(std::uint64_t first_seed, std::uint64_t seeds, Floods floods) {
  double tightest = 0;
  std::uint64_t requests = 0;
  std::uint64_t tightest_seed = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    PromisedWorkload workload(seed, floods);
    PromiseSimulation& simulation = workload.run();
    EXPECT_LE(simulation.worst_lateness(), PromiseSimulation::kRounding) << "seed " << seed;
    EXPECT_LE(workload.worst_tardiness_inside(), PromiseSimulation::kRounding) << "seed " << seed;
    EXPECT_EQ(workload.reported_misses(), 0U) << "seed " << seed;
    EXPECT_FALSE(simulation.idled()) << "seed " << seed;
    EXPECT_FALSE(simulation.out_of_order()) << "seed " << seed;
    requests += simulation.completed();
    if (simulation.tightest() > tightest) tightest_seed = seed;
    tightest = std::max(tightest, simulation.tightest());
    if (::testing::Test::HasFailure()) break;
  }
  std::cout << "seeds " << first_seed << " to " << first_seed + seeds - 1 << ", " << requests
            << " requests: the tightest used " << tightest << " of its latency, at seed "
            << tightest_seed << "\n";
  return tightest;
}

TEST(EdfPromises, HoldForFlowsAlone) {
  EXPECT_GT(run_all(1, 400, Floods::none), 0.7) << "workloads that are never near prove nothing";
}

TEST(EdfPromises, HoldBesideFloodsOfFlowsWithoutAPromise) {
  EXPECT_GT(run_all(10'001, 400, Floods::others), 0.9);
}

TEST(EdfPromises, HoldBesideFlowsOutsideTheirCurvesAndFlowsWithOnlyATarget) {
  EXPECT_GT(run_all(20'001, 400, Floods::everyone), 0.9);
}

}  // namespace
}  // namespace vpfs
