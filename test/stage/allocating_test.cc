// What coordinators allocate, and to which virtual PFSes.
#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "stage/cap_time.h"
#include "test/stage/allocating_fixture.h"
#include "test/support/allocation_count.h"

namespace vpfs::stage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST_F(StageAllocations, OlderCyclesChangeNothing) {
  make();
  const VirtualPfsId a = id("a");
  ASSERT_EQ(allocate(5, 7, {{.id = a, .limits = bytes(kMiB)}}), CycleResult::applied);
  now_ += 100ms;
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> old = {
      {5, 7}, {5, 6}, {4, 100}, {0, 0}};
  for (const auto& [term, sequence] : old) {
    EXPECT_EQ(allocate(term, sequence, {{.id = a, .limits = {}}}, kForever, true),
              CycleResult::outdated);
  }
  EXPECT_EQ(stage_->allocations().limits(a.app), bytes(kMiB));
  EXPECT_EQ(stage_->allocations().lease_end(), now_ + 900ms);
  EXPECT_EQ(stage_->allocations().counts().outdated, 4U);
  EXPECT_EQ(allocate(6, 0, {}), CycleResult::applied);
  now_ += 2s;
  (void)release();
  EXPECT_EQ(allocate(6, 0, {}), CycleResult::outdated) << "also when no lease is in force";
  EXPECT_EQ(stage_->allocations().epoch(), (Epoch{.term = 6, .sequence = 0}));
}

TEST_F(StageAllocations, ACompleteCycleLiftsTheLimitsThatItDoesNotHave) {
  make();
  const VirtualPfsId a = id("a");
  const VirtualPfsId b = id("b");
  const VirtualPfsId job = id("job-1");
  ASSERT_EQ(allocate(1, 1, {{.id = a, .limits = bytes(1)}, {.id = b, .limits = bytes(2)}}),
            CycleResult::applied);
  ASSERT_EQ(allocate(1, 2, {{.id = job, .limits = bytes(3)}, {.id = b, .limits = {}}}),
            CycleResult::applied);
  EXPECT_THAT(stage_->allocations().limited(), UnorderedElementsAre(a.app, job.app));
  ASSERT_EQ(
      allocate(1, 3, {{.id = b, .limits = bytes(2)}, {.id = job, .limits = bytes(3)}}, 1s, true),
      CycleResult::applied);
  EXPECT_THAT(stage_->allocations().limited(), UnorderedElementsAre(b.app, job.app));
  (void)backlog("a");
  EXPECT_EQ(release(), 100U);
}

TEST_F(StageAllocations, AFlowIsCappedIfItsCapIsLowerThanItsOwnLimit) {
  config_.virtual_pfs[0].share.rate = {10 * kMiB};
  make();
  const VirtualPfsId a = id("a");
  const VirtualPfsId b = id("b");
  const auto is_capped = [&](VirtualPfsId of) {
    CounterRow row;
    EXPECT_EQ(stage_->copy_counters(std::to_underlying(of.app), std::span(&row, 1), now_), 1U);
    return row.is_capped;
  };
  EXPECT_FALSE(is_capped(a));
  ASSERT_EQ(allocate(1, 1, {{.id = a, .limits = bytes(kGiB)}, {.id = b, .limits = bytes(kGiB)}}),
            CycleResult::applied);
  EXPECT_FALSE(is_capped(a)) << "its own limit is lower";
  EXPECT_TRUE(is_capped(b));
  ASSERT_EQ(allocate(1, 2, {{.id = a, .limits = bytes(kMiB)}}), CycleResult::applied);
  EXPECT_TRUE(is_capped(a));
}

TEST(CapTime, CountsTheTimesInWhichTheCapWasTheLowerLimit) {
  CapTime time;
  EXPECT_FALSE(time.advance(3s, false));
  EXPECT_TRUE(time.advance(5s, true));
  EXPECT_FALSE(time.advance(5s, true));
  EXPECT_FALSE(time.advance(9s, false));
  EXPECT_TRUE(time.advance(10s, true));
  EXPECT_EQ(time.total(), 3s);
}

TEST_F(StageAllocations, WhatIsNotThereIsReportedAndTheRestApplied) {
  make();
  const VirtualPfsId old = id("job-1");
  const VirtualPfsId a = id("a");
  retire(old);
  const VirtualPfsId far = {.app = AppId{1'000'000}};
  const VirtualPfsId later = {.app = a.app, .generation = a.generation + 1};
  config_.virtual_pfs.erase(config_.virtual_pfs.begin() + 1);  // b
  const VirtualPfsId removed = id("b");
  stage_->reconfigure(config_, now_);
  ASSERT_EQ(allocate(1, 1,
                     {{.id = old, .limits = bytes(1)},
                      {.id = far, .limits = bytes(1)},
                      {.id = later, .limits = bytes(1)},
                      {.id = removed, .limits = bytes(1)},
                      {.id = a, .limits = bytes(1)}}),
            CycleResult::applied);
  EXPECT_THAT(unknown_, ElementsAre(old, far, later, removed));
  EXPECT_THAT(stage_->allocations().limited(), ElementsAre(a.app));
  EXPECT_EQ(stage_->allocations().counts().unknown, 4U);
}

TEST_F(StageAllocations, TheNextVirtualPfsOfANumberBeginsWithoutLimits) {
  make();
  const VirtualPfsId first = id("job-1");
  ASSERT_EQ(allocate(1, 1, {{.id = first, .limits = bytes(1), .elsewhere_total = 500}}, kForever),
            CycleResult::applied);
  retire(first);
  const VirtualPfsId second = backlog("job-2");
  ASSERT_EQ(second.app, first.app);
  EXPECT_EQ(stage_->allocations().limits(second.app), Limits{});
  EXPECT_EQ(release(), 100U);
}

TEST_F(StageAllocations, ARemovedVirtualPfsLosesItsLimitAndComesBackWithoutOne) {
  make();
  const VirtualPfsId b = backlog("b");
  ASSERT_EQ(allocate(1, 1, {{.id = b, .limits = bytes(1)}}, kForever), CycleResult::applied);
  EXPECT_EQ(release(), 1U);
  Config without = config_;
  without.virtual_pfs.erase(without.virtual_pfs.begin() + 1);
  stage_->reconfigure(without, now_);
  EXPECT_THAT(stage_->allocations().limited(), IsEmpty());
  EXPECT_EQ(release(), 99U);
  stage_->reconfigure(config_, now_);
  ASSERT_EQ(backlog("b"), b);
  EXPECT_EQ(release(), 100U);
}

TEST_F(StageAllocations, AReloadOfSharesKeepsTheLimits) {
  make();
  const VirtualPfsId b = backlog("b");
  ASSERT_EQ(allocate(1, 1, {{.id = b, .limits = bytes(kSize.count)}}, kForever),
            CycleResult::applied);
  EXPECT_EQ(release(), 1U);
  config_.virtual_pfs[1].share.weight = 7;
  stage_->reconfigure(config_, now_);
  EXPECT_EQ(release(), 0U);
  EXPECT_EQ(until_, now_ + 1s);
  config_.virtual_pfs[1].share.rate = {16 * kMiB};
  stage_->reconfigure(config_, now_);
  EXPECT_EQ(release(), 0U);
  EXPECT_EQ(until_, now_ + 1s);
}

// The next policy gets the limits if it can enforce them.
TEST_F(StageAllocations, AnotherPolicyKeepsTheLimitsOrTheyAreLiftedWithANotice) {
  for (const bool per_target : {false, true}) {
    config_ = config_of("sfq");
    config_.scheduler_per_target = per_target;
    make();
    const VirtualPfsId a = backlog("a");
    arrive(a, 1);  // another lane
    ASSERT_EQ(allocate(1, 1, {{.id = a, .limits = bytes(1)}}, kForever), CycleResult::applied);
    EXPECT_EQ(release(), 1U);
    config_.policy = "tbf";
    stage_->reconfigure(config_, now_);
    EXPECT_LE(release(), per_target ? 0U : 1U) << "a scheduler of its own has a new bucket";
    EXPECT_EQ(stage_->allocations().limits(a.app), bytes(1));
    config_.policy = "edf";
    stage_->reconfigure(config_, now_);
    EXPECT_GE(release(), 99U);
    EXPECT_THAT(stage_->allocations().limited(), IsEmpty());
    EXPECT_THAT(stage_->take_notices(), ElementsAre(HasSubstr("edf cannot enforce")));
    EXPECT_EQ(allocate(1, 2, {{.id = a, .limits = bytes(1)}}), CycleResult::unsupported);
    EXPECT_EQ(allocate(1, 3, {{.id = a, .elsewhere_total = 1}}), CycleResult::unsupported);
    EXPECT_EQ(allocate(1, 2, {}), CycleResult::applied) << "what was refused does not count";
    config_.policy = "sfq";
    stage_->reconfigure(config_, now_);
    (void)backlog("a");
    arrive(a, 1);
    EXPECT_EQ(release(), 101U);
    EXPECT_EQ(stage_->allocations().counts().unsupported, 2U);
  }
}

TEST_F(StageAllocations, ALaneThatIsMadeLaterSharesTheLimit) {
  config_.scheduler_per_target = true;
  make();
  const VirtualPfsId a = backlog("a");
  ASSERT_EQ(allocate(1, 1, {{.id = a, .limits = bytes(1)}}, kForever), CycleResult::applied);
  EXPECT_EQ(release(), 1U);
  for (std::uint32_t device = 1; device < 5; ++device) arrive(a, device);
  EXPECT_EQ(release(), 0U);
  stage_->set_hold(10s, now_);
  EXPECT_EQ(release(), 0U);
  EXPECT_EQ(until_, now_ + 5s);
  now_ += 5s;
  EXPECT_EQ(release(), 103U);
  EXPECT_EQ(stage_->virtual_pfs().counters(a.app).passed_limit, 103U);
}

TEST_F(StageAllocations, WhyARequestWaitsNamesTheCoordinator) {
  make();
  const VirtualPfsId a = backlog("a");
  ASSERT_EQ(allocate(1, 1, {{.id = a, .limits = bytes(0)}}), CycleResult::applied);
  (void)release();
  EXPECT_EQ(stage_->lanes()[0].scheduler->why_waiting(a.app, now_).reason,
            "the coordinator's limit");
}

TEST_F(StageAllocations, TenThousandVirtualPfsesCostLittleAndAllocateNothing) {
  constexpr std::size_t kCount = 10'000;
  config_.most_virtual_pfs = kCount;
  for (const std::string policy : {"sfq", "tbf"}) {
    config_.policy = policy;
    make();
    std::vector<Allocation> all;
    for (std::size_t i = 0; i < kCount; ++i) {
      all.push_back({.id = id("job-" + std::to_string(i)), .limits = bytes(kMiB)});
    }
    std::uint64_t sequence = 0;
    const auto run = [&](const char* what) {
      const auto start = std::chrono::steady_clock::now();
      ASSERT_EQ(allocate(1, ++sequence, all, kForever, true), CycleResult::applied);
      const std::chrono::duration<double, std::nano> took =
          std::chrono::steady_clock::now() - start;
      printf("%s, %s: %.0f ns for each virtual PFS\n", policy.c_str(), what, took.count() / kCount);
    };
    run("first limits");
    // Half of them have a request waiting.
    for (std::size_t i = 0; i < kCount; i += 2) {
      arrive(all[i].id);
      arrive(all[i].id);
    }
    (void)release();
    const std::uint64_t before = allocation_count();
    run("the same limits");
    for (Allocation& each : all) each.limits = bytes(kGiB);
    run("other limits");
    for (Allocation& each : all) each.limits.operations = 5;
    run("limits of operations too");
    EXPECT_EQ(allocation_count(), before);
    now_ += kForever;
    const auto start = std::chrono::steady_clock::now();
    (void)release();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    printf("%s, the end of the lease: %.0f ns for each virtual PFS\n", policy.c_str(),
           took.count() / kCount);
    EXPECT_EQ(stage_->queued(), 0U);
    EXPECT_THAT(stage_->allocations().limited(), IsEmpty());
  }
}

}  // namespace
}  // namespace vpfs::stage
