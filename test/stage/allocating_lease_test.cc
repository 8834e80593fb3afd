// For how long allocations hold, and what holds afterwards.
#include <span>
#include <vector>

#include <gmock/gmock.h>

#include "test/stage/allocating_fixture.h"

namespace vpfs::stage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(StageAllocations, ALimitHoldsUntilItsLeaseEndsAndReleaseSaysWhen) {
  make();
  const VirtualPfsId a = id("a");
  ASSERT_EQ(allocate(1, 1, {{.id = a, .limits = bytes(kKiB)}}, 500ms), CycleResult::applied);
  EXPECT_TRUE(stage_->allocations().in_force());
  EXPECT_EQ(stage_->allocations().limits(a.app), bytes(kKiB));
  EXPECT_EQ(stage_->allocations().limits(id("b").app), Limits{});
  (void)backlog("a");
  EXPECT_EQ(release(), 1U);
  EXPECT_EQ(until_, now_ + 500ms);
  now_ += 500ms - 1ns;
  EXPECT_EQ(release(), 0U);
  now_ += 1ns;
  EXPECT_EQ(release(), 99U);
  EXPECT_EQ(until_, kNever);
  EXPECT_FALSE(stage_->allocations().in_force());
  EXPECT_THAT(stage_->allocations().limited(), IsEmpty());
  EXPECT_EQ(stage_->allocations().counts().lease_ends, 1U);
  EXPECT_THAT(stage_->take_notices(), ElementsAre(HasSubstr("are lifted (virtual PFSes: 1)")));
}

TEST_F(StageAllocations, EveryAppliedCycleBeginsTheLeaseAnew) {
  make();
  for (std::uint64_t i = 1; i < 50; ++i) {
    ASSERT_EQ(allocate(1, i, {}, 100ms), CycleResult::applied);
    (void)release();
    EXPECT_EQ(until_, now_ + 100ms);
    now_ += 99ms;
  }
  EXPECT_EQ(stage_->allocations().counts().lease_ends, 0U);
  EXPECT_EQ(stage_->allocations().counts().applied, 49U);
}

TEST_F(StageAllocations, ACycleWithoutALeaseTakesTheLimitsBackAtOnce) {
  make();
  const VirtualPfsId a = backlog("a");
  ASSERT_EQ(allocate(3, 1, {{.id = a, .limits = bytes(1), .elsewhere_total = 7}}, kForever),
            CycleResult::applied);
  EXPECT_EQ(release(), 1U);
  ASSERT_EQ(allocate(3, 2, {}, 0s, true), CycleResult::applied);
  EXPECT_EQ(release(), 99U);
  EXPECT_EQ(until_, kNever);
  EXPECT_FALSE(stage_->allocations().in_force());
  EXPECT_THAT(stage_->allocations().limited(), IsEmpty());
  EXPECT_EQ(stage_->allocations().counts().lease_ends, 0U) << "the coordinator did not fall silent";
  EXPECT_THAT(stage_->take_notices(), ElementsAre(HasSubstr("taken its limits back")));
  EXPECT_EQ(allocate(3, 2, {}, 0s, true), CycleResult::outdated);
  EXPECT_EQ(allocate(3, 3, {{.id = a, .limits = bytes(1)}}), CycleResult::applied);
  EXPECT_TRUE(stage_->allocations().in_force());
}

TEST_F(StageAllocations, TheFallbackHoldsOnceTheLimitsAreTakenBack) {
  config_.fallback = {.mode = Fallback::Mode::rate, .rate = BytesPerSecond{5 * kMiB}};
  make();
  const VirtualPfsId a = id("a");
  ASSERT_EQ(allocate(1, 1, {{.id = a, .limits = bytes(1)}}, kForever), CycleResult::applied);
  ASSERT_EQ(allocate(1, 2, {}, 0s, true), CycleResult::applied);
  EXPECT_EQ(stage_->allocations().limits(a.app), bytes(5 * kMiB));
  EXPECT_EQ(stage_->allocations().limits(id("b").app), Limits{}) << "it had no limit";
}

TEST_F(StageAllocations, TheFallbackMayKeepTheLastLimits) {
  config_.fallback = {.mode = Fallback::Mode::last};
  make();
  const VirtualPfsId a = backlog("a");
  ASSERT_EQ(allocate(1, 1, {{.id = a, .limits = bytes(1)}}, 1s), CycleResult::applied);
  EXPECT_EQ(release(), 1U);
  now_ += 1h;
  EXPECT_EQ(release(), 0U);
  EXPECT_FALSE(stage_->allocations().in_force());
  EXPECT_EQ(stage_->allocations().limits(a.app), bytes(1));
  EXPECT_THAT(stage_->take_notices(), ElementsAre(HasSubstr("stay (virtual PFSes: 1)")));
  // Whoever runs the site without the coordinator changes the fallback.
  config_.fallback = {};
  stage_->reconfigure(config_, now_);
  EXPECT_EQ(release(), 99U);
}

TEST_F(StageAllocations, TheFallbackMayBeARateForThoseThatHadALimit) {
  config_.fallback = {.mode = Fallback::Mode::rate, .rate = {kSize.count}};
  make();
  const VirtualPfsId a = backlog("a");
  const VirtualPfsId b = backlog("b");
  ASSERT_EQ(allocate(1, 1, {{.id = a, .limits = {.operations = 0}}, {.id = b, .limits = {}}}, 1s),
            CycleResult::applied);
  EXPECT_EQ(release(), 100U);
  now_ += 1s;
  EXPECT_EQ(release(), 1U) << "the burst of the first limit of bytes";
  EXPECT_EQ(until_, now_ + 1s);
  EXPECT_EQ(stage_->allocations().limits(a.app), bytes(kSize.count));
  EXPECT_THAT(stage_->take_notices(), ElementsAre(HasSubstr("become 64 KiB/s")));
  // The next lease begins with what it has.
  ASSERT_EQ(allocate(1, 2, {{.id = b, .limits = bytes(1)}}, 1s), CycleResult::applied);
  EXPECT_EQ(stage_->allocations().limits(a.app), bytes(kSize.count));
  ASSERT_EQ(allocate(1, 3, {{.id = a, .limits = {}}}, 1s), CycleResult::applied);
  EXPECT_EQ(release(), 99U);
}

TEST_F(StageAllocations, LeasesThatEndOftenAreCountedAndNotToldEachTime) {
  make();
  std::size_t notices = 0;
  for (std::uint64_t i = 1; i <= 200; ++i) {
    ASSERT_EQ(allocate(1, i, {}, 100ms), CycleResult::applied);
    now_ += 1s;
    (void)release();
    notices += stage_->take_notices().size();
  }
  EXPECT_EQ(stage_->allocations().counts().lease_ends, 200U);
  EXPECT_EQ(notices, 4U);
}

// Parts of a cycle that end up behind the end of its lease would leave limits that are never
// lifted.
TEST_F(StageAllocations, PartsThatComeAfterTheEndOfTheirLeaseDoNothing) {
  make();
  const std::vector<Allocation> all = {{.id = id("a"), .limits = bytes(1)},
                                       {.id = id("b"), .limits = bytes(1)}};
  const Cycle cycle = {.epoch = {.term = 1, .sequence = 1}, .lease = 10ms};
  ASSERT_EQ(stage_->begin_cycle(cycle, all, now_), CycleResult::applied);
  stage_->allocate_some(cycle.epoch, std::span(all).first(1), now_, unknown_);
  EXPECT_EQ(stage_->allocations().limited().size(), 1U);
  now_ += 10ms;
  stage_->allocate_some(cycle.epoch, std::span(all).last(1), now_, unknown_);
  EXPECT_THAT(stage_->allocations().limited(), IsEmpty());
  EXPECT_FALSE(stage_->allocations().in_force());
}

}  // namespace
}  // namespace vpfs::stage
