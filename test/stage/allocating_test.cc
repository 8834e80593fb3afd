// What coordinators allocate, for how long, and what holds afterwards.
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage/stage.h"
#include "test/support/allocation_count.h"

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr auto kForever = 24h;
constexpr Bytes kSize = {64 * kKiB};

Limits bytes(std::uint64_t rate) {
  return {.bytes = BytesPerSecond{rate}};
}

class StageAllocations : public ::testing::Test {
 protected:
  static Config config_of(const std::string& policy) {
    Config config;
    config.policy = policy;
    config.scheduler.depth.requests = 100'000;
    config.cost.per_request = {};
    config.virtual_pfs = {{.name = "a", .share = {}},
                          {.name = "b", .share = {.weight = 2}},
                          {.name = "job-{jobid}", .share = {}}};
    config.idle = 5s;
    return config;
  }
  void make() {
    stage_ = std::make_unique<Stage>(config_, now_);
    stage_->set_hold(2 * kForever, now_);
  }
  VirtualPfsId id(const std::string& name) {
    const bool is_job = name.starts_with("job-");
    return stage_->find({.virtual_pfs = name, .declared_name = is_job ? "job-{jobid}" : name}, now_)
        .id;
  }
  CycleResult allocate(std::uint64_t term, std::uint64_t sequence,
                       const std::vector<Allocation>& allocations, Duration lease = 1s,
                       bool complete = false) {
    const CycleAnswer answer = stage_->allocate(
        {.epoch = {.term = term, .sequence = sequence}, .lease = lease, .complete = complete},
        allocations, now_);
    unknown_ = answer.unknown;
    return answer.result;
  }
  Held& arrive(VirtualPfsId to, std::uint32_t device = 0) {
    Held& io = requests_.emplace_back();
    io.app = to.app;
    io.generation = to.generation;
    io.size = io.asked = kSize;
    io.cost = kSize.count;
    io.arrival = now_;
    io.device = device;
    stage_->arrive(io, now_);
    return io;
  }
  // Releases what may go and ends it at once.
  std::size_t release() {
    std::vector<Held*> released;
    until_ = stage_->release(now_, released);
    for (Held* io : released) {
      Stage::took_over(*io);
      stage_->end(*io, {.moved = io->size}, now_);
    }
    return released.size();
  }
  void retire(VirtualPfsId which) {
    now_ += 2 * config_.idle;
    stage_->find_idle(100, now_);
    stage_->retire(100, now_);
    ASSERT_FALSE(stage_->virtual_pfs().is_there(which));
  }
  // A backlog that used up its burst.
  VirtualPfsId backlog(const std::string& name, int requests = 100) {
    const VirtualPfsId of = id(name);
    for (int i = 0; i < requests; ++i) arrive(of);
    return of;
  }

  Config config_ = config_of("sfq");
  TimePoint now_ = TimePoint{} + 1h;
  std::unique_ptr<Stage> stage_;
  std::deque<Held> requests_;
  std::vector<VirtualPfsId> unknown_;
  TimePoint until_ = kNever;
};

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
  EXPECT_EQ(stage_->allocations().counts().lease_ends, 0U) << "nobody fell silent";
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

TEST_F(StageAllocations, WhyARequestWaitsNamesTheCoordinator) {
  make();
  const VirtualPfsId a = backlog("a");
  ASSERT_EQ(allocate(1, 1, {{.id = a, .limits = bytes(0)}}), CycleResult::applied);
  (void)release();
  EXPECT_EQ(stage_->lanes()[0].scheduler->why_waiting(a.app, now_).reason,
            "the coordinator's limit");
}

// Parts of a cycle that end up behind the end of its lease would leave limits that nobody lifts.
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

TEST_F(StageAllocations, ServiceElsewhereHoldsNobodyForLongerThanTheLongestDelayOrTheLease) {
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
