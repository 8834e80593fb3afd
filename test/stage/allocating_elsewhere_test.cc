// Service elsewhere that coordinators tell of.
#include <deque>
#include <vector>

#include "test/stage/allocating_fixture.h"

namespace vpfs::stage {
namespace {

TEST_F(StageAllocations, ServiceElsewhereCountsByDifferences) {
  config_.scheduler.depth.requests = 1;
  make();
  const VirtualPfsId a = id("a");
  const VirtualPfsId b = id("b");
  std::uint64_t sequence = 0;
  const auto tell = [&](std::uint64_t term, Cost total) {
    now_ += 50ms;
    ASSERT_EQ(allocate(term, ++sequence, {{.id = a, .elsewhere_total = total}}),
              CycleResult::applied);
  };
  // Which of two virtual PFSes goes first. Both have had the same when it is called.
  const auto first = [&] {
    Held& of_a = arrive(a);
    Held& of_b = arrive(b);
    std::vector<Held*> released;
    (void)stage_->release(now_, released);
    const AppId winner = released.at(0)->app;
    for (Held* io : {&of_a, &of_b}) {
      stage_->abandon(*io, now_);
    }
    return winner;
  };
  tell(1, 10 * kGiB);
  EXPECT_EQ(first(), a.app) << "the base gives no credit and no debt";
  make();
  sequence = 0;
  tell(1, 10 * kGiB);
  tell(1, 10 * kGiB + kMiB);
  EXPECT_EQ(first(), b.app);
}

TEST_F(StageAllocations, ServiceElsewhereHoldsNoFlowForLongerThanTheLongestDelayOrTheLease) {
  config_.scheduler.depth.requests = 1;
  config_.longest_delay = 200ms;
  make();
  const VirtualPfsId a = backlog("a");
  (void)backlog("b", 1000);
  // How many of so many requests are a's.
  const auto of_a = [&](int count) {
    int found = 0;
    for (int i = 0; i < count; ++i) {
      std::vector<Held*> released;
      (void)stage_->release(now_, released);
      if (released.empty()) break;
      Stage::took_over(*released[0]);
      stage_->end(*released[0], {.moved = kSize}, now_);
      if (released[0]->app == a.app) ++found;
    }
    return found;
  };
  ASSERT_EQ(allocate(1, 1, {{.id = a, .elsewhere_total = 0}}, 10s), CycleResult::applied);
  ASSERT_EQ(allocate(1, 2, {{.id = a, .elsewhere_total = kGiB}}, 10s), CycleResult::applied);
  EXPECT_LE(of_a(50), 1);
  now_ += 199ms;
  EXPECT_EQ(of_a(50), 0);
  now_ += 1ms;
  EXPECT_EQ(of_a(50), 1);

  config_.longest_delay = 1h;
  stage_->reconfigure(config_, now_);
  ASSERT_EQ(allocate(1, 3, {{.id = a, .elsewhere_total = 2 * kGiB}}, 1s), CycleResult::applied);
  EXPECT_LE(of_a(10), 1);
  now_ += 999ms;
  EXPECT_LE(of_a(10), 1);
  now_ += 1ms;
  EXPECT_NEAR(of_a(30), 10, 2) << "on its own the stage shares by weight, 1 and 2";
}

// A coordinator that lets many cycles pass, or has a fast cluster behind it, gives large
// differences. Up to the largest cost none is lost, whatever it is in one call.
TEST_F(StageAllocations, NoServiceElsewhereIsLostBecauseItIsALot) {
  config_.scheduler.depth.requests = 1;
  make();
  const VirtualPfsId a = id("a");
  const VirtualPfsId b = id("b");
  std::deque<Held*> waiting;
  for (int i = 0; i < 3000; ++i) arrive(b);
  ASSERT_EQ(allocate(1, 1, {{.id = a, .elsewhere_total = 0}}, kForever), CycleResult::applied);
  // 64 MiB elsewhere at weight 1 are as much as 128 MiB of `b`, which has weight 2.
  now_ += 1ms;
  ASSERT_EQ(allocate(1, 2, {{.id = a, .elsewhere_total = 64 * kMiB}}, kForever),
            CycleResult::applied);
  arrive(a);
  std::size_t before = 0;
  for (;; ++before) {
    std::vector<Held*> released;
    (void)stage_->release(now_, released);
    ASSERT_EQ(released.size(), 1U);
    Stage::took_over(*released[0]);
    stage_->end(*released[0], {.moved = kSize}, now_);
    if (released[0]->app == a.app) break;
  }
  EXPECT_NEAR(static_cast<double>(before), 2048.0, 3.0);
}

}  // namespace
}  // namespace vpfs::stage
