// The caps that stages below aggregators enforce never add up to more than the capacity of the
// coordinator above, whatever happens to messages, connections, stages, aggregators and itself.
#include <gtest/gtest.h>

#include "test/control/allocation/hierarchical_site.h"

namespace vpfs::allocation {
namespace {

using namespace std::chrono_literals;

// Runs that settings for some seeds, and adds up what has happened.
HierarchicalSite::Outcome run(HierarchySettings settings, std::uint64_t seeds) {
  HierarchicalSite::Outcome all;
  for (settings.seed = 1; settings.seed <= seeds; ++settings.seed) {
    HierarchicalSite site(settings);
    site.run();
    EXPECT_LE(site.caps().most().bytes, site.capacity().bytes) << "seed " << settings.seed;
    EXPECT_LE(site.caps().most().operations, site.capacity().operations)
        << "seed " << settings.seed;
    if (!site.caps().is_safe()) break;
    const HierarchicalSite::Outcome& one = site.outcome();
    all.applied += one.applied;
    all.lease_ends += one.lease_ends;
    all.parent_lease_ends += one.parent_lease_ends;
    all.stages_disconnected += one.stages_disconnected;
    all.aggregators_disconnected += one.aggregators_disconnected;
    all.aggregator_restarts += one.aggregator_restarts;
    all.root_restarts += one.root_restarts;
    all.answers += one.answers;
    all.pending += one.pending;
  }
  return all;
}

// A stage may hang for any time while its aggregator runs.
TEST(Hierarchy, StagesThatHangForLongStayBelowTheCapacity) {
  const HierarchicalSite::Outcome all = run({.stages = 25}, 4);
  EXPECT_GT(all.applied, 4'000U);
  EXPECT_GT(all.lease_ends, 200U);
  EXPECT_GT(all.parent_lease_ends, 2U);
  EXPECT_GT(all.stages_disconnected, 40U);
  EXPECT_GT(all.aggregator_restarts, 0U);
  EXPECT_GT(all.root_restarts, 0U);
  EXPECT_GT(all.pending, 40U);
  EXPECT_GT(all.answers, 2 * all.pending);
}

TEST(Hierarchy, FiftyStagesToAnAggregatorStayBelowTheCapacity) {
  const HierarchicalSite::Outcome all = run({.stages = 50, .breaks = 20, .hangs = 30}, 2);
  EXPECT_GT(all.applied, 5'000U);
  EXPECT_GT(all.pending, 20U);
}

// An aggregator may hang for any time while its stages read what they get in a while.
TEST(Hierarchy, AggregatorsThatHangForLongStayBelowTheCapacity) {
  const HierarchicalSite::Outcome all = run(
      {.stages = 25, .longest_hang = 300ms, .longest_delay = 200ms, .aggregator_hangs = 150}, 10);
  EXPECT_GT(all.aggregators_disconnected, 8U);
  EXPECT_GT(all.parent_lease_ends, 8U);
  EXPECT_GT(all.pending, 20U);
}

TEST(Hierarchy, FewStagesWithManyFaultsStayBelowTheCapacity) {
  const HierarchicalSite::Outcome all = run({.aggregators = 3,
                                             .stages = 3,
                                             .breaks = 300,
                                             .restarts = 150,
                                             .hangs = 300,
                                             .refusals = 100,
                                             .flow_changes = 1000,
                                             .aggregator_breaks = 200,
                                             .aggregator_restarts = 150},
                                            60);
  EXPECT_GT(all.pending, 100U);
}

// They disconnect a silent stage only at the end of what the parent gave.
TEST(Hierarchy, PatientAggregatorsLetNoCapOutliveTheLeaseOfTheirParent) {
  const HierarchicalSite::Outcome all = run({.aggregators = 3,
                                             .stages = 4,
                                             .hangs = 500,
                                             .refusals = 0,
                                             .silent_cycles = 1000,
                                             .aggregator_breaks = 300,
                                             .aggregator_restarts = 0,
                                             .root_restarts = 0},
                                            60);
  EXPECT_GT(all.parent_lease_ends, 40U);
  EXPECT_GT(all.stages_disconnected, 50U);
}

TEST(Hierarchy, AllOfTheCapacityIsInForceAgainWhenTheFaultsAreOver) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    HierarchicalSite site({.stages = 10, .seed = seed, .faults_end = 2s, .end = 6s});
    site.run();
    EXPECT_EQ(site.caps().in_force(), site.capacity()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace vpfs::allocation
