// Anticipation on several schedulers in virtual time: lanes of one data server, and data servers
// with a coordinator that tells them of total service and changes weights and limits.
#include <vector>

#include <gtest/gtest.h>

#include "test/support/simulation/site_simulation.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

constexpr AnticipationSettings kOn = {.on = true};
constexpr std::uint64_t kSpeedOfEach = 40 * kMiB;
// Half of one server's throughput for 10 s.
constexpr double kHalf = 5.0 * 40 * kMiB;

// One request at a time on each server, which a server alone does in 6.25 ms.
SiteWork thinker(std::vector<std::size_t> servers) {
  return {.servers = std::move(servers), .striped = false, .in_flight = 1, .think = 1ms};
}
SiteWork flood(std::vector<std::size_t> servers) {
  return {.servers = std::move(servers), .striped = false, .in_flight = 16};
}

class Meter {
 public:
  explicit Meter(SiteSimulation& simulation) : simulation_(simulation) {}

  // The bytes that each application has on each server in `length` from now on.
  std::vector<std::vector<double>> bytes(std::size_t apps, std::size_t servers, Duration length) {
    std::vector<std::vector<double>> bytes(apps, std::vector<double>(servers));
    const auto add = [&](double sign) {
      for (std::size_t app = 0; app < apps; ++app) {
        for (std::size_t server = 0; server < servers; ++server) {
          bytes[app][server] += sign * static_cast<double>(simulation_.done(app, server));
        }
      }
    };
    add(-1);
    simulation_.run_until(simulation_.now() + length);
    add(1);
    return bytes;
  }
  // The ratio of the first application's bytes to the second one's.
  double ratio(std::size_t servers, Duration length) {
    double sums[2] = {};
    const auto all = bytes(2, servers, length);
    for (int app = 0; app < 2; ++app) {
      for (const double each : all[static_cast<std::size_t>(app)]) sums[app] += each;
    }
    return sums[0] / sums[1];
  }

 private:
  SiteSimulation& simulation_;
};

void expect_all_slots_are_back(const SiteSimulation& simulation, std::size_t servers) {
  for (std::size_t server = 0; server < servers; ++server) {
    EXPECT_EQ(simulation.scheduler(server).queued(), 0U);
    EXPECT_EQ(simulation.scheduler(server).outstanding(), 0U);
    EXPECT_EQ(simulation.scheduler(server).load().cost, 0U);
  }
}

// Weights count in each lane; the limit of the third application counts for both together.
TEST(SfqAnticipationSite, EachLaneKeepsItsSlotsAndOneLimitHoldsForAll) {
  SiteWork limited = flood({0, 1});
  limited.rate = {8 * kMiB};
  limited.end = 40s;
  SiteWork thinks = thinker({0, 1});
  thinks.end = 60s;
  SiteWork floods = flood({0, 1});
  floods.end = 80s;
  SiteSimulation simulation({.servers = 2,
                             .speed = kSpeedOfEach,
                             .anticipation = kOn,
                             .lanes = true,
                             .coordinator_begins = 1h},
                            {thinks, floods, limited});
  Meter meter(simulation);
  simulation.run_until(TimePoint(20s));
  auto bytes = meter.bytes(3, 2, 10s);
  EXPECT_NEAR(bytes[2][0] + bytes[2][1], 10.0 * 8 * kMiB, 4.0 * kMiB);
  for (std::size_t lane = 0; lane < 2; ++lane) {
    EXPECT_NEAR(bytes[0][lane] / bytes[1][lane], 1, 0.07) << lane;
    EXPECT_GE(bytes[0][lane] + bytes[1][lane] + bytes[2][lane], 0.89 * 2 * kHalf) << lane;
    EXPECT_GT(simulation.scheduler(lane).server(simulation.now()).get<Duration>("slots_kept"),
              Duration::zero());
  }
  simulation.run_until(TimePoint(60s));
  // No slot is kept any more: the other one has every slot.
  simulation.run_until(TimePoint(65s));
  bytes = meter.bytes(3, 2, 10s);
  for (std::size_t lane = 0; lane < 2; ++lane) EXPECT_NEAR(bytes[1][lane], 2 * kHalf, kMiB) << lane;
  simulation.run_until(TimePoint(81s));
  expect_all_slots_are_back(simulation, 2);
}

// The thinker has a server of its own and one with the other application, which has a server of its
// own, too: equal weights take more than half of the shared one, since the thinker cannot fill its
// own.
TEST(SfqAnticipationSite, TotalServiceIsSharedAlsoWithoutAQueue) {
  double ratio[2] = {};
  for (const bool on : {false, true}) {
    SiteWork thinks = thinker({0, 1});
    thinks.end = 90s;
    SiteWork floods = flood({1, 2});
    floods.end = 90s;
    SiteSimulation simulation({.servers = 3,
                               .speed = kSpeedOfEach,
                               .anticipation = on ? kOn : AnticipationSettings{},
                               .coordinator_begins = 1s},
                              {thinks, floods});
    Meter meter(simulation);
    simulation.run_until(TimePoint(30s));
    ratio[on ? 1 : 0] = meter.ratio(3, 30s);
    // Twice the weight is beyond what it can use; half of it takes the rest of the shared server.
    simulation.set_weight(1, 2);
    simulation.run_until(TimePoint(70s));
    if (on) EXPECT_NEAR(meter.ratio(3, 15s), 0.5, 0.04);
    simulation.run_until(TimePoint(91s));
    expect_all_slots_are_back(simulation, 3);
  }
  EXPECT_NEAR(ratio[1], 1, 0.07);
  EXPECT_LT(ratio[0], 0.75) << "it does not need anticipation";
}

TEST(SfqAnticipationSite, WeightsAndLimitsOfACoordinatorHoldAndNoSlotIsKeptForALimit) {
  SiteWork thinks = thinker({0});
  thinks.end = 120s;
  SiteWork floods = flood({0});
  floods.end = 120s;
  SiteSimulation simulation(
      {.servers = 1, .speed = kSpeedOfEach, .anticipation = kOn, .coordinator_begins = 1h},
      {thinks, floods});
  Meter meter(simulation);
  const auto kept = [&] {
    return simulation.scheduler(0).server(simulation.now()).get<Duration>("slots_kept").value();
  };
  simulation.run_until(TimePoint(20s));
  EXPECT_NEAR(meter.ratio(1, 10s), 1, 0.06);

  // Weights that change with every cycle take nothing away: half of the time it has a half, and
  // half of the time two thirds.
  double changing[2] = {};
  for (int cycle = 0; cycle < 300; ++cycle) {
    simulation.set_weight(0, 1 + static_cast<std::uint32_t>(cycle % 2));
    const auto bytes = meter.bytes(2, 1, 50ms);
    for (std::size_t app = 0; app < 2; ++app) changing[app] += bytes[app][0];
  }
  EXPECT_NEAR(changing[0] / (changing[0] + changing[1]), 7.0 / 12, 0.02);
  simulation.set_weight(0, 1);

  // While it is limited, no slot is kept for it: the limit says when it goes.
  simulation.set_limits(0, {.bytes = {{4 * kMiB}}});
  const Duration before = kept();
  const auto limited = meter.bytes(2, 1, 10s);
  EXPECT_EQ(kept(), before);
  EXPECT_LE(limited[0][0], 10.0 * 4 * kMiB + 4.0 * kMiB);
  EXPECT_GE(limited[0][0] + limited[1][0], 2 * kHalf - kMiB);

  simulation.set_limits(0, {});
  simulation.run_until(simulation.now() + 10s);
  EXPECT_NEAR(meter.ratio(1, 10s), 1, 0.06);
  EXPECT_GT(kept(), before);

  // Whenever a limit comes, it ends what is kept at once.
  for (int i = 0; i < 300; ++i) {
    simulation.set_limits(0, {.bytes = {{4 * kMiB}}});
    const Duration at_once = kept();
    simulation.run_until(simulation.now() + 20ms);
    EXPECT_EQ(kept(), at_once);
    simulation.set_limits(0, {});
    simulation.run_until(simulation.now() + 37ms);
  }

  // A limit of the other one leaves room, and what it may have it gets.
  simulation.set_limits(1, {.bytes = {{4 * kMiB}}});
  const auto beside = meter.bytes(2, 1, 10s);
  EXPECT_NEAR(beside[1][0], 10.0 * 4 * kMiB, 2.0 * kMiB);
  simulation.set_limits(1, {});
  simulation.run_until(TimePoint(121s));
  expect_all_slots_are_back(simulation, 1);
}

}  // namespace
}  // namespace vpfs
