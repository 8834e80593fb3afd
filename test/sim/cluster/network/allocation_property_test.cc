// Networks with flows that come and go at random are held to the definition of their policy, to the
// rates that an allocation from scratch gives, and to the bytes that flows were given.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/wide.h"
#include "sim/cluster/network/network.h"
#include "test/sim/cluster/network/equal_shares.h"
#include "test/sim/cluster/network/fairness.h"
#include "test/sim/cluster/network/routes.h"

namespace vpfs::sim {
namespace {

struct Case {
  std::vector<BytesPerSecond> capacities;
  std::vector<std::vector<LinkId>> routes;  // one of which each flow takes
};

// Some links of few or many capacities, and routes over any of them.
Case random_links(Random& random) {
  Case result;
  const std::uint64_t links = 1 + random.below(20);
  const bool has_equal_links = random.chance(50);
  for (std::uint64_t i = 0; i < links; ++i) {
    result.capacities.push_back(
        {1'000'000 * (1 + random.below(3)) + (has_equal_links ? 0 : random.below(1'000'000))});
  }
  for (int i = 0; i < 30; ++i) {
    std::vector<LinkId>& route = result.routes.emplace_back();
    for (std::uint64_t hop = random.below(5); hop > 0; --hop) {
      route.push_back(static_cast<LinkId>(random.below(links)));
    }
  }
  return result;
}

Case random_topology(Random& random) {
  const auto rate = [&random] { return BytesPerSecond{1'000'000 * (1 + random.below(4))}; };
  const LinkRates rates{.node = rate(), .local = rate(), .global = rate()};
  const auto topology = [&] {
    switch (random.below(4)) {
      case 0:
        return made(make_single_switch(2 + random.below(8), rates.node));
      case 1:
        return made(
            make_torus({1 + random.below(4), 1 + random.below(4), 1 + random.below(3)}, rates));
      case 2:
        return made(make_fat_tree({2 + random.below(3), 1 + random.below(3)}, rates));
      default:
        return made(
            make_dragonfly({1 + random.below(2), 1 + random.below(3), 1 + random.below(2)}, rates));
    }
  }();
  Case result{.capacities = topology->capacities(), .routes = {}};
  for (int i = 0; i < 60; ++i) {
    const auto from = static_cast<NodeId>(random.below(topology->nodes()));
    const auto to = static_cast<NodeId>(random.below(topology->nodes()));
    topology->route(from, to, random, result.routes.emplace_back());
  }
  return result;
}

std::vector<ClassPolicy> policies() {
  return {ClassPolicy::none(), ClassPolicy::priority(), ClassPolicy::apportioned(1, 1),
          ClassPolicy::apportioned(5, 95), ClassPolicy::apportioned(19, 1)};
}

// Starts flows at random and looks at all of them whenever something has changed.
class Churn {
 public:
  Churn(Case the_case, ClassPolicy policy, std::uint64_t seed)
      : case_(std::move(the_case)),
        policy_(policy),
        random_(seed),
        network_(engine_, case_.capacities, policy) {}

  void run(int starts) {
    for (int left = starts; left > 0;) {
      const std::uint64_t together = random_.chance(20) ? 1 + random_.below(10) : 1;
      const auto pause = Duration(static_cast<std::int64_t>(random_.below(7'000'000)));
      engine_.at(engine_.now() + pause, [this, together] {
        for (std::uint64_t i = 0; i < together; ++i) start();
      });
      left -= static_cast<int>(together);
      go_until(engine_.now() + pause);
    }
    // With FP, storage waits for communication, which ends.
    while (engine_.next() != kNever && !::testing::Test::HasFailure()) {
      go_until(engine_.next());
    }
  }

  [[nodiscard]] const std::vector<TimePoint>& ends() const { return ends_; }
  [[nodiscard]] const Network& network() const { return network_; }
  [[nodiscard]] int looks() const { return looks_; }
  [[nodiscard]] std::size_t most_running() const { return most_running_; }

 private:
  struct Running {
    AllottedFlow flow;
    Network::FlowId id;
    std::size_t number;
    Bytes size;
    Wide moved;  // in units of a byte / (4096 * 10^9)
  };

  static constexpr Wide kUnitsOfAByte = Wide{Rate::kUnitsOfAByte} * 1'000'000'000;

  void start() {
    Running each{.flow = {.route = case_.routes[random_.below(case_.routes.size())],
                          .traffic_class = random_.chance(50) ? TrafficClass::communication
                                                              : TrafficClass::storage,
                          .cap = std::nullopt,
                          .rate = {}},
                 .id = {},
                 .number = ends_.size(),
                 .size = {random_.chance(3) ? 0 : random_.below(100'000)},
                 .moved = 0};
    if (random_.chance(20)) each.flow.cap = BytesPerSecond{1 + random_.below(1'000'000)};
    ends_.emplace_back(kNever);
    each.id = network_.start({.route = each.flow.route,
                              .size = each.size,
                              .traffic_class = each.flow.traffic_class,
                              .cap = each.flow.cap},
                             [this, number = each.number] {
                               EXPECT_EQ(ends_[number], kNever) << "it ends once";
                               ends_[number] = engine_.now();
                             });
    running_.push_back(std::move(each));
  }

  void go_until(TimePoint end) {
    while (engine_.next() <= end && !::testing::Test::HasFailure()) {
      const Duration passed = engine_.next() - engine_.now();
      for (Running& each : running_) {
        each.moved += Wide{each.flow.rate.units} * static_cast<std::uint64_t>(passed.count());
      }
      engine_.run_until(engine_.next());
      look();
    }
    const Duration rest = end - engine_.now();
    for (Running& each : running_) {
      each.moved += Wide{each.flow.rate.units} * static_cast<std::uint64_t>(rest.count());
    }
    engine_.run_until(end);
  }

  void look() {
    ++looks_;
    std::erase_if(running_, [this](const Running& each) {
      const bool has_ended = ends_[each.number] != kNever;
      EXPECT_EQ(network_.is_running(each.id), !has_ended);
      if (has_ended) expect_right_end(each);
      return has_ended;
    });
    ASSERT_EQ(network_.running(), running_.size());
    most_running_ = std::max(most_running_, running_.size());
    std::vector<AllottedFlow> flows;
    for (Running& each : running_) {
      each.flow.rate = network_.rate(each.id);
      flows.push_back(each.flow);
      const Wide left = Wide{each.size.count} * kUnitsOfAByte - each.moved;
      ASSERT_LT(each.moved, Wide{each.size.count} * kUnitsOfAByte) << "it should have ended";
      ASSERT_EQ(network_.remaining(each.id).count,
                static_cast<std::uint64_t>((left + kUnitsOfAByte - 1) / kUnitsOfAByte));
    }
    if (policy_.sharing == Sharing::equal) {
      // Nothing but its definition holds.
    } else if (network_.unsettled() == unsettled_) {
      ASSERT_EQ(why_unfair(case_.capacities, policy_, flows), "");
    } else {
      ASSERT_EQ(what_is_over_capacity(case_.capacities, flows), "");
    }
    unsettled_ = network_.unsettled();
    const std::vector<Rate> expected = rates_from_scratch(case_.capacities, policy_, flows);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      ASSERT_EQ(flows[i].rate.units, expected[i].units) << "flow " << i << " of " << flows.size();
    }
  }

  // All bytes have passed now, and had not a nanosecond before.
  static void expect_right_end(const Running& each) {
    const bool is_at_once = each.size.count == 0 || (each.flow.route.empty() && !each.flow.cap);
    if (is_at_once) {
      EXPECT_EQ(each.moved, 0U);
      return;
    }
    EXPECT_GE(each.moved, Wide{each.size.count} * kUnitsOfAByte);
    EXPECT_LT(each.moved - each.flow.rate.units, Wide{each.size.count} * kUnitsOfAByte);
  }

  Case case_;
  ClassPolicy policy_;
  Random random_;
  Engine engine_;
  Network network_;
  std::vector<Running> running_;
  std::vector<TimePoint> ends_;  // of all flows
  int looks_ = 0;
  std::size_t most_running_ = 0;
  std::uint64_t unsettled_ = 0;
};

TEST(AllocationProperty, HoldsAtAnyTimeInAnyNetwork) {
  constexpr int kStarts = 60;
  int looks = 0;
  std::uint64_t unsettled = 0;
  std::size_t most_running = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const ClassPolicy& policy : policies()) {
      if (::testing::Test::HasFailure()) break;
      SCOPED_TRACE("seed " + std::to_string(seed) + ", policy " +
                   std::to_string(static_cast<int>(policy.kind)) + " " +
                   std::to_string(policy.communication) + ":" + std::to_string(policy.storage));
      Random random(seed);
      Churn churn(seed % 2 == 0 ? random_links(random) : random_topology(random), policy, seed);
      churn.run(kStarts);
      EXPECT_EQ(std::ranges::count(churn.ends(), kNever), 0) << "every flow ends";
      EXPECT_EQ(churn.network().running(), 0U);
      looks += churn.looks();
      unsettled += churn.network().unsettled();
      most_running = std::max(most_running, churn.most_running());
    }
  }
  EXPECT_GT(looks, 7'000);
  EXPECT_GE(most_running, 30U);
  EXPECT_EQ(unsettled, 0U);
}

TEST(AllocationProperty, EqualSharesAreWhatTheyAreDefinedAs) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (const ClassPolicy& policy : policies()) {
      if (::testing::Test::HasFailure()) break;
      SCOPED_TRACE("seed " + std::to_string(seed));
      Random random(seed);
      Churn churn(seed % 2 == 0 ? random_links(random) : random_topology(random),
                  with_equal_shares(policy), seed);
      churn.run(60);
      EXPECT_EQ(std::ranges::count(churn.ends(), kNever), 0) << "every flow ends";
    }
  }
}

TEST(AllocationProperty, TheSameSeedGivesTheSameEnds) {
  for (const ClassPolicy& policy : policies()) {
    const auto ends = [&policy](std::uint64_t seed) {
      Random random(3);
      Churn churn(random_topology(random), policy, seed);
      churn.run(50);
      return churn.ends();
    };
    EXPECT_EQ(ends(1), ends(1));
    EXPECT_NE(ends(1), ends(2));
  }
}

}  // namespace
}  // namespace vpfs::sim
