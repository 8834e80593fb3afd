// The caps that stages enforce never add up to more than the capacity, whatever happens to
// messages, connections, stages and the coordinator.
#include <gtest/gtest.h>

#include "test/control/allocation/coordinated_site.h"

namespace vpfs::allocation {
namespace {

using namespace std::chrono_literals;

void expect_safe(const CoordinatedSite& site) {
  EXPECT_TRUE(site.caps().is_safe());
  EXPECT_LE(site.caps().most().bytes, site.capacity().bytes);
  EXPECT_LE(site.caps().most().operations, site.capacity().operations);
}

TEST(SafeSum, AThousandStagesWithFaultsStayBelowTheCapacity) {
  CoordinatedSite site({.stages = 1000, .seed = 42, .faults_end = 3s, .end = 5s});
  site.run();
  expect_safe(site);
  const CoordinatedSite::Outcome& outcome = site.outcome();
  // All kinds of faults have happened.
  EXPECT_GT(outcome.applied, 10'000U);
  EXPECT_GT(outcome.lease_ends, 100U);
  EXPECT_GT(outcome.breaks, 50U);
  EXPECT_GT(outcome.stage_restarts, 20U);
  EXPECT_GT(outcome.disconnected, 5U);
  EXPECT_GT(outcome.refused, 50U);
}

TEST(SafeSum, FewStagesWithManyFaultsStayBelowTheCapacity) {
  CoordinatedSite::Outcome all;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    CoordinatedSite site({.stages = 6,
                          .seed = seed,
                          .faults_end = 4s,
                          .end = 5s,
                          .breaks = 300,
                          .restarts = 150,
                          .hangs = 300,
                          .refusals = 100,
                          .flow_changes = 500,
                          .coordinator_restarts = 150});
    site.run();
    expect_safe(site);
    ASSERT_TRUE(site.caps().is_safe()) << "seed " << seed;
    all.outdated += site.outcome().outdated;
    all.coordinator_restarts += site.outcome().coordinator_restarts;
    all.disconnected += site.outcome().disconnected;
  }
  EXPECT_GT(all.outdated, 0U);
  EXPECT_GT(all.coordinator_restarts, 10U);
  EXPECT_GT(all.disconnected, 10U);
}

TEST(SafeSum, AllOfTheCapacityIsInForceAgainWhenTheFaultsAreOver) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CoordinatedSite site({.stages = 20, .seed = seed, .faults_end = 2s, .end = 5s});
    site.run();
    expect_safe(site);
    EXPECT_EQ(site.caps().in_force(), site.capacity()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace vpfs::allocation
