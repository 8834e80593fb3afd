#include "schedulers/depth_controller.h"

#include <algorithm>
#include <deque>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/simulation/depth_simulation.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;
using Server = DepthSimulation::Server;
using Shape = DepthSimulation::Shape;

// A server from some time on, and the smallest depth that gives 98 % of its throughput.
struct Part {
  Server server;
  double best = 1;
};

// Measured from 5 s after the start of each part.
struct Figures {
  double least_depth = 1e9;  // of the best
  double most_depth = 0;
  double settled = 0;     // seconds from the start of a part until within 1.5, the longest
  double throughput = 0;  // of what the best fixed depth reaches
};

Figures run(const std::vector<Part>& parts, Duration length, std::uint64_t seed,
            const DepthSimulation::Demand& demand = {}) {
  DepthController controller({});
  DepthSimulation simulation(parts.front().server, demand, seed, &controller);
  Figures figures;
  double done = 0;
  double possible = 0;
  Duration begin = 0s;
  for (const Part& part : parts) {
    simulation.set_server(part.server);
    for (Duration at = 20ms; at <= length; at += 20ms) {
      simulation.run(begin + at);
      const double depth = controller.base_depth() / part.best;
      if (depth > 1.5 || depth < 1 / 1.5) {
        figures.settled = std::max(figures.settled, std::chrono::duration<double>(at).count());
      }
      if (at == 5s) done -= static_cast<double>(simulation.done());
      if (at <= 5s) continue;
      figures.least_depth = std::min(figures.least_depth, depth);
      figures.most_depth = std::max(figures.most_depth, depth);
    }
    done += static_cast<double>(simulation.done());
    begin += length;
    DepthSimulation fixed(part.server, demand, seed, nullptr,
                          static_cast<std::uint32_t>(part.best));
    fixed.run(5s);
    possible -= static_cast<double>(fixed.done());
    fixed.run(length);
    possible += static_cast<double>(fixed.done());
  }
  figures.throughput = done / possible;
  return figures;
}

void print(const std::string& name, std::uint64_t seed, const Figures& figures) {
  std::cout << name << ", seed " << seed << ": settled in " << figures.settled << " s, depth "
            << figures.least_depth << " to " << figures.most_depth << " of the best, throughput "
            << figures.throughput << "\n";
}

void expect_best(const std::string& name, const std::vector<Part>& parts, Duration length,
                 std::uint64_t seed, const DepthSimulation::Demand& demand = {}) {
  SCOPED_TRACE(name + ", seed " + std::to_string(seed));
  const Figures figures = run(parts, length, seed, demand);
  print(name, seed, figures);
  EXPECT_LE(figures.settled, 5);
  EXPECT_GE(figures.least_depth, 1 / 1.5);
  EXPECT_LE(figures.most_depth, 1.5);
  EXPECT_GE(figures.throughput, 0.97);
}

void expect_best_of_parallel_servers(Shape shape, std::uint64_t seed) {
  struct Case {
    std::uint32_t parallelism;
    Duration service;
  };
  const Case cases[] = {{1, 200us}, {1, 10ms}, {2, 1ms},  {2, 10ms},  {3, 1ms},  {3, 10ms},
                        {4, 1ms},   {8, 2ms},  {8, 10ms}, {16, 10ms}, {64, 10ms}};
  for (const Case& one : cases) {
    const std::string name = std::to_string(one.parallelism) + " servers of " +
                             std::to_string(one.service / 1us) + " us";
    const Server server = {.parallelism = one.parallelism, .service = one.service, .shape = shape};
    // A low rate of requests takes longer to show a difference of some percent.
    const Duration length = one.service / one.parallelism > 1ms ? 40s : 10s;
    expect_best(name, {{.server = server, .best = static_cast<double>(one.parallelism)}}, length,
                seed);
  }
}

TEST(DepthController, FindsTheNumberOfParallelServers) {
  expect_best_of_parallel_servers(Shape::fixed, 1);
}

TEST(DepthController, FindsItWithExponentialServiceTimes) {
  expect_best_of_parallel_servers(Shape::exponential, 2);
}

TEST(DepthController, FindsItWithRequestsOfMixedSizes) {
  expect_best_of_parallel_servers(Shape::mixed_sizes, 3);
}

// Service of 0.5 ms behind 5 ms: 11 requests fill the pipe. A varying service needs more to keep
// the server busy, although throughput times unloaded latency is still 11; trying fixed depths
// found 17.
TEST(DepthController, FillsTheLatencyBeforeASerialServer) {
  Server server = {.service = 500us, .delay = 5ms};
  expect_best("behind 5 ms", {{.server = server, .best = 11}}, 15s, 1);
  server.shape = Shape::exponential;
  for (const std::uint64_t seed : {1U, 2U}) {
    expect_best("behind 5 ms, exponential", {{.server = server, .best = 17}}, 15s, seed);
  }
}

TEST(DepthController, SettlesAgainWhenTheSpeedChanges) {
  for (const std::uint32_t parallelism : {1U, 4U, 16U}) {
    const Server fast = {.parallelism = parallelism, .service = 2ms, .shape = Shape::exponential};
    Server slow = fast;
    slow.service *= 4;
    const double best = parallelism;
    expect_best("four times slower and back",
                {{.server = fast, .best = best},
                 {.server = slow, .best = best},
                 {.server = fast, .best = best}},
                10s, 1);
  }
  const Server fast = {.service = 500us, .delay = 5ms};
  const Server slow = {.service = 2ms, .delay = 5ms};
  expect_best(
      "the same behind 5 ms",
      {{.server = fast, .best = 11}, {.server = slow, .best = 4}, {.server = fast, .best = 11}},
      15s, 1);
}

TEST(DepthController, SettlesAgainWhenTheParallelismChanges) {
  const Server narrow = {.parallelism = 4, .service = 1ms};
  Server wide = narrow;
  wide.parallelism = 16;
  expect_best(
      "4 to 16 and back",
      {{.server = narrow, .best = 4}, {.server = wide, .best = 16}, {.server = narrow, .best = 4}},
      15s, 1);
}

// One request in 100 or 20 takes 50 times as long. A mean needs some hundred slow ones, which take
// longer than 5 s at such rates. So the depth may be off by more for a time.
TEST(DepthController, KeepsTheServerBusyInSpiteOfASlowTail) {
  struct Case {
    std::uint32_t per_mille;
    bool occupy;
    double best;
  };
  // Slow requests occupy nothing here; trying fixed depths found the best.
  const Case cases[] = {{10, true, 4}, {50, true, 4}, {10, false, 8}, {50, false, 18}};
  for (const Case& one : cases) {
    const Server server = {.parallelism = 4,
                           .service = 400us,
                           .slow_per_mille = one.per_mille,
                           .slow_ones_occupy = one.occupy};
    const std::string name = std::to_string(one.per_mille / 10) + " % slow " +
                             (one.occupy ? "at the server" : "outside of it");
    const Figures figures = run({{.server = server, .best = one.best}}, 10s, 1);
    print(name, 1, figures);
    EXPECT_GE(figures.least_depth, 0.5) << name;
    EXPECT_LE(figures.most_depth, 2.5) << name;
    EXPECT_GE(figures.throughput, 0.95) << name;
  }
}

TEST(DepthController, DemandOnAndOffNeitherCollapsesNorGrowsTheDepth) {
  const Server server = {.parallelism = 8, .service = 1ms, .shape = Shape::exponential};
  for (const Duration on : {Duration(20ms), Duration(100ms), Duration(1s)}) {
    for (const std::uint32_t in_flight : {3U, 12U, 1000U}) {
      const std::string name =
          std::to_string(on / 1ms) + " ms on and off, " + std::to_string(in_flight) + " in flight";
      expect_best(name, {{.server = server, .best = std::min(8.0, 1.0 * in_flight)}}, 10s, 1,
                  {.on = on, .off = on, .in_flight = in_flight});
    }
  }
}

TEST(DepthController, GoesOnFromTheDepthThatOneBeforeItHasFound) {
  const Server server = {.parallelism = 16, .service = 2ms};
  for (const std::uint32_t found : {0U, 4U, 16U, 64U, 1024U}) {
    DepthController controller({});
    controller.begin_with(found);
    EXPECT_EQ(controller.depth(), std::max(found, 1U));
    DepthSimulation simulation(server, {}, 1, &controller);
    simulation.run(40s);
    EXPECT_NEAR(controller.base_depth(), 18, 6) << found;
  }
}

// Clients that wait for each reply show nothing about the server, so the learned depth stays.
TEST(DepthController, KeepsItsDepthWhileFewAreInFlight) {
  DepthController controller({});
  const Server server = {.parallelism = 8};
  DepthSimulation busy(server, {}, 1, &controller);
  busy.run(5s);
  const std::uint32_t depth = controller.base_depth();
  EXPECT_NEAR(depth, 10, 2);
  TimePoint now(5s);
  for (int i = 0; i < 100'000; ++i) {
    controller.dispatched(1, now);
    controller.starved(now);
    now += 1ms;
    controller.completed(now - 1ms, 0, now);
    controller.starved(now);
    ASSERT_EQ(controller.base_depth(), depth);
  }
  EXPECT_EQ(controller.depth(), depth) << "no probe is left in force";
}

TEST(DepthController, StaysOutOfThrashing) {
  for (const std::uint32_t parallelism : {1U, 4U, 16U}) {
    for (const Shape shape : {Shape::fixed, Shape::exponential}) {
      const Server server = {
          .parallelism = parallelism, .service = 2ms, .shape = shape, .thrash_percent = 50};
      expect_best("thrashing beyond " + std::to_string(parallelism),
                  {{.server = server, .best = static_cast<double>(parallelism)}}, 10s, 1);
    }
  }
}

TEST(DepthController, KeepsToItsLimits) {
  const Server server = {.parallelism = 16};
  for (const std::uint32_t most : {1U, 2U, 5U}) {
    DepthController controller({.least = 1, .most = most});
    DepthSimulation simulation(server, {}, 1, &controller);
    for (Duration at = 1ms; at < 3s; at += 1ms) {
      simulation.run(at);
      ASSERT_LE(controller.depth(), most);
    }
    EXPECT_EQ(controller.base_depth(), most);
  }
  DepthController controller({.least = 6, .most = 100});
  DepthSimulation simulation({.parallelism = 2}, {}, 1, &controller);
  for (Duration at = 1ms; at < 3s; at += 1ms) {
    simulation.run(at);
    ASSERT_GE(controller.depth(), 6U);
  }
  EXPECT_EQ(controller.base_depth(), 6U);
}

TEST(DepthController, LimitsThatMakeNoSenseAreMadeToFit) {
  EXPECT_EQ(DepthController({.least = 0, .most = 0}).depth(), 1U);
  EXPECT_EQ(DepthController({.least = 9, .most = 4}).depth(), 4U);
  EXPECT_EQ(DepthController({.least = UINT32_MAX, .most = UINT32_MAX}).depth(), 65536U);
}

// Calls in any order that a caller could make, at times that stay, creep and leap.
TEST(DepthController, SurvivesAnyTimesThatDoNotGoBack) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    DepthController controller({.least = 1, .most = seed % 2 == 0 ? 65536U : 64U});
    std::deque<TimePoint> sent;
    TimePoint now{};
    const std::uint64_t leaps = random() % 3 * 500;
    for (int i = 0; i < 20'000; ++i) {
      switch (random() % 4) {
        case 0:
          break;
        case 1:
          now += Duration(random() % 1000);
          break;
        case 2:
          now += Duration(random() % 1'000'000);
          break;
        default:
          if (leaps > 0 && random() % leaps == 0) now += (TimePoint::max() - now) / 4;
      }
      if (!sent.empty() && random() % 2 == 0) {
        const TimePoint when = sent.front();
        sent.pop_front();
        controller.completed(when, static_cast<std::uint32_t>(sent.size()), now);
      }
      while (sent.size() < controller.depth() && random() % 8 != 0) {
        sent.push_back(now);
        controller.dispatched(static_cast<std::uint32_t>(sent.size()), now);
      }
      if (sent.size() < controller.depth() && random() % 16 == 0) controller.starved(now);
      ASSERT_GE(controller.depth(), 1U);
      ASSERT_LE(controller.depth(), 65536U);
    }
  }
}

TEST(DepthController, TimeThatDoesNotPassTeachesNothing) {
  DepthController controller({});
  for (int i = 0; i < 100'000; ++i) {
    controller.dispatched(1, TimePoint(1s));
    controller.completed(TimePoint(1s), 0, TimePoint(1s));
  }
  EXPECT_EQ(controller.depth(), 1U);
}

}  // namespace
}  // namespace vpfs
