// Applications whose files are striped over the targets of one data server, with a scheduler for
// each: weights divide the total of all targets.
#include <chrono>
#include <iostream>

#include <gtest/gtest.h>

#include "test/stage/striped_rig.h"

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;

struct Case {
  std::uint32_t targets;
  std::uint32_t depth;      // of each
  std::uint32_t processes;  // of each application
  std::uint32_t at_once;    // requests of each process
};

// With the requests in flight that the heavier application needs for its part of all slots. If each
// target shares by itself, eight of these have 2.66 to 2.88.
TEST(Striped, TotalsOfAllTargetsFollowTheWeightsWithFewRequestsInFlight) {
  constexpr Case kCases[] = {{2, 1, 3, 1},  {2, 1, 2, 2},  {2, 4, 8, 1},  {2, 4, 4, 2},
                             {2, 4, 12, 1}, {2, 4, 32, 1}, {4, 1, 6, 1},  {4, 1, 2, 4},
                             {4, 4, 4, 4},  {4, 4, 6, 4},  {4, 4, 16, 1}, {4, 4, 64, 1}};
  for (const Case& each : kCases) {
    for (const std::uint32_t jitter : {0U, 50U}) {
      StripedSimulation simulation(
          {.targets = each.targets, .depth = each.depth, .jitter_percent = jitter},
          {{.share = {.weight = 3}, .processes = each.processes, .at_once = each.at_once},
           {.share = {}, .processes = each.processes, .at_once = each.at_once}});
      simulation.run(3s);
      simulation.forget();
      simulation.run(12s);
      SCOPED_TRACE(::testing::Message()
                   << each.targets << " targets, depth " << each.depth << ", " << each.processes
                   << " x " << each.at_once << ", jitter " << jitter);
      EXPECT_NEAR(simulation.ratio(), 3.0, 0.06);
      EXPECT_EQ(simulation.idle_with_work(), 0U) << "no target waits for an absent application";
    }
  }
}

// What an application has for itself at one target counts at the other one, and its requests there
// are held for no longer than the longest delay.
TEST(Striped, ServiceAtOneTargetCountsAtTheOtherOneButStopsNoFlow) {
  StripedSimulation simulation({.depth = 1}, {{.share = {}, .processes = 2, .is_striped = false},
                                              {.processes = 4, .targets = {1}}});
  simulation.run(3s);
  simulation.forget();
  simulation.run(20s);
  EXPECT_NEAR(simulation.ratio(), 1.0, 0.04);
  EXPECT_GE(simulation.done(0, 1), 0.5 * kMiB * 20s / 550ms) << "one request in half a second";
  EXPECT_LE(simulation.longest_wait(), 550ms);
}

// An application that was away has no claim: it gets its share from now on, and no more.
TEST(Striped, AnApplicationThatBeginsLaterHasNoClaimToThePast) {
  StripedSimulation simulation(
      {}, {{.share = {}, .processes = 24, .first = 10s}, {.share = {}, .processes = 24}});
  simulation.run(10s + 100ms);
  simulation.forget();
  simulation.run(2s);
  EXPECT_NEAR(simulation.ratio(), 1.0, 0.05);
}

// An application that used only the first target for long, and then both, had its part there: at
// the other one it goes first for a bounded time.
TEST(Striped, AClaimFromAnotherTargetIsBounded) {
  StripedSimulation simulation({.depth = 1},
                               {{.share = {}, .processes = 2, .targets = {0}},
                                {.share = {.weight = 8}, .processes = 16, .targets = {0}},
                                {.share = {}, .processes = 16, .targets = {1}},
                                {.share = {}, .processes = 8, .targets = {1}, .first = 60s}});
  simulation.run(60s);
  simulation.forget();
  simulation.run(10s);
  EXPECT_NEAR(simulation.done(3) / simulation.done(2), 1.0, 0.1);
}

// The share is the same while a target has a fault and answers slowly.
TEST(Striped, PausesOfAllApplicationsChangeNothing) {
  StripedSimulation simulation(
      {.targets = 2, .depth = 2},
      {{.share = {.weight = 3}, .processes = 12, .think = 2ms}, {.share = {}, .processes = 12}});
  simulation.run(3s);
  simulation.forget();
  simulation.run(12s);
  EXPECT_NEAR(simulation.ratio(), 3.0, 0.06);
}

}  // namespace
}  // namespace vpfs::stage
