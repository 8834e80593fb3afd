// A scheduler that takes over from another one goes on as that one would have.
#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/adaptbf.h"
#include "schedulers/policies/anticipation_settings.h"
#include "schedulers/policies/edf.h"
#include "schedulers/policies/registry.h"
#include "test/support/round_robin.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kFlows = 6;
constexpr Duration kStep = 500us;

// A scheduler and the requests in it, in front of a server that does one MiB each 10 ms.
class Side {
 public:
  Side(const PolicyKind& policy, const SchedulerSettings& settings, std::uint64_t seed)
      : policy_(policy), settings_(settings), scheduler_(make_scheduler(policy, settings)) {
    std::mt19937_64 random(seed);
    for (std::uint32_t app = 0; app < kFlows; ++app) {
      Share share = {.weight = static_cast<std::uint32_t>(1 + random() % 8)};
      if (app == 1) share.rate = {20 * kMiB};
      if (app == 2) share.min = {10 * kMiB};
      if (app == 3) {
        share.rate = {5 * kMiB};
        share.latency = 200ms;
        share.burst = {2 * kMiB};
      }
      if (app == 4) share.operations = 40;
      share.own = {{"nodes", 1 + app}};
      shares_.push_back(share);
    }
    introduce(TimePoint{});
  }

  void arrive(std::uint32_t app, Bytes size, std::uint8_t traffic_class, TimePoint now) {
    IoRequest& request = requests_.emplace_back();
    request.app = AppId{app};
    request.size = size;
    request.cost = size.count;
    request.traffic_class = traffic_class;
    request.arrival = now;
    numbers_[&request] = arrived_++;
    scheduler_->enqueue(request, now);
  }
  // Ends what is done by now, and sends what may go.
  void turn(TimePoint now, bool sends) {
    while (!at_server_.empty() && at_server_.front().second <= now) {
      IoRequest* const done = at_server_.front().first;
      at_server_.pop_front();
      scheduler_->complete(*done, done->cost, now);
    }
    if (!sends) return;
    for (auto next = scheduler_->next(now); next.request != nullptr; next = scheduler_->next(now)) {
      sent_.push_back(numbers_.at(next.request));
      const Duration time(static_cast<std::int64_t>(next.request->cost * 10));
      busy_until_ = std::max(busy_until_, now) + time;
      at_server_.emplace_back(next.request, busy_until_);
    }
  }

  // Another process's scheduler: it has the shares, then the requests, then the state.
  void hand_over(TimePoint now) {
    SavedState all;
    scheduler_->save_all(now, all);
    std::vector<SavedState> flows(kFlows);
    for (std::uint32_t app = 0; app < kFlows; ++app) {
      scheduler_->save(AppId{app}, now, flows[app]);
    }
    std::vector<IoRequest*> queued;
    while (IoRequest* const request = scheduler_->any_queued()) {
      scheduler_->withdraw(*request, now);
      queued.push_back(request);
    }
    std::ranges::sort(queued, {}, [this](const IoRequest* each) { return numbers_.at(each); });
    scheduler_ = make_scheduler(policy_, settings_);
    introduce(now);
    for (IoRequest* each : queued) scheduler_->enqueue(*each, now);
    const SavedState read = SavedState::decode(all.encode()).value();
    scheduler_->restore_all(read, now);
    for (std::uint32_t app = 0; app < kFlows; ++app) {
      scheduler_->restore(AppId{app}, flows[app], now);
    }
    scheduler_->restored(now);
  }

  [[nodiscard]] bool is_idle() const { return at_server_.empty(); }
  [[nodiscard]] const std::vector<std::uint64_t>& sent() const { return sent_; }
  [[nodiscard]] Scheduler& scheduler() { return *scheduler_; }

 private:
  void introduce(TimePoint now) {
    for (std::uint32_t app = 0; app < kFlows; ++app) {
      (void)scheduler_->set_share(AppId{app}, shares_[app], now);
      if (policy_.caps && app == 5) {
        (void)scheduler_->set_limits(AppId{app}, {.bytes = BytesPerSecond{8 * kMiB}}, now);
      }
    }
  }

  const PolicyKind& policy_;
  const SchedulerSettings& settings_;
  std::vector<Share> shares_;
  std::unique_ptr<Scheduler> scheduler_;
  std::deque<IoRequest> requests_;
  std::map<const IoRequest*, std::uint64_t> numbers_;
  std::uint64_t arrived_ = 0;
  std::deque<std::pair<IoRequest*, TimePoint>> at_server_;
  TimePoint busy_until_ = {};
  std::vector<std::uint64_t> sent_;
};

// Whether a scheduler that is handed over `times` times sends the same requests in the same order
// as one that is not. Returns how many requests were queued at the hand-overs.
std::size_t expect_same_order(const PolicyKind& policy, const SchedulerSettings& settings,
                              std::uint64_t seed) {
  Side stays(policy, settings, seed);
  Side moves(policy, settings, seed);
  std::mt19937_64 random(seed);
  TimePoint now = TimePoint{} + 1h;
  std::size_t queued = 0;
  for (int round = 0; round < 4; ++round) {
    for (int step = 0; step < 1500; ++step, now += kStep) {
      // Some flows pause, so that others are alone for a while.
      for (std::uint32_t app = 0; app < kFlows; ++app) {
        const bool pauses = (step / 300 + static_cast<int>(app) + round) % 4 == 0;
        if (pauses || random() % 12 != 0) continue;
        const Bytes size = {4096 * (1 + random() % 64)};
        const auto traffic_class = static_cast<std::uint8_t>(app % 2);
        stays.arrive(app, size, traffic_class, now);
        moves.arrive(app, size, traffic_class, now);
      }
      stays.turn(now, true);
      moves.turn(now, true);
    }
    while (!stays.is_idle()) {
      now += kStep;
      stays.turn(now, false);
      moves.turn(now, false);
    }
    EXPECT_TRUE(stays.sent() == moves.sent())
        << policy.name << ", seed " << seed << ", round " << round;
    if (::testing::Test::HasFailure()) break;
    queued += moves.scheduler().queued();
    moves.hand_over(now);
  }
  return queued;
}

SchedulerSettings anticipation_settings(bool anticipates) {
  SchedulerSettings settings = {.depth = {.requests = 4},
                                .own = {EdfSettings{.capacity = 100 * kMiB},
                                        AdapTbfSettings{.capacity = {.configured = 60 * kMiB}}}};
  settings.own.of<AnticipationSettings>().on = anticipates;
  return settings;
}

TEST(Succession, EveryPolicyGoesOnInTheSameOrder) {
  for (const PolicyKind* policy : known_policies()) {
    std::size_t queued = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      queued += expect_same_order(*policy, anticipation_settings(false), seed);
      if (HasFailure()) return;
    }
    EXPECT_GT(queued, 1000U) << policy->name << ": the test shows little";
  }
}

TEST(Succession, EveryPolicyGoesOnInTheSameOrderWithTrafficClasses) {
  for (const PolicyKind* policy : known_policies()) {
    for (const auto mode : {TrafficClasses::Mode::apportion, TrafficClasses::Mode::strict}) {
      SchedulerSettings settings = anticipation_settings(false);
      settings.classes = {.mode = mode, .classes = {{.name = "a", .share = 3}, {.name = "b"}}};
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        (void)expect_same_order(*policy, settings, seed);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Succession, WhatIsKnownOfThinkTimesIsKept) {
  const SchedulerSettings settings = anticipation_settings(true);
  Side side(*find_policy("sfq"), settings, 1);
  TimePoint now = TimePoint{} + 1h;
  // One flow comes back 2 ms after each answer.
  TimePoint next = now;
  for (int step = 0; step < 4000; ++step, now += kStep) {
    if (now >= next && side.is_idle()) {
      side.arrive(0, {4096}, 0, now);
      next = now + 2ms;
    }
    side.turn(now, true);
  }
  while (!side.is_idle()) side.turn(now += kStep, false);
  const auto think_time = [&] {
    return side.scheduler().report(AppId{0}, now).get<Duration>("think_time").value_or(0s);
  };
  const Duration before = think_time();
  ASSERT_GT(before, 0s);
  side.hand_over(now);
  EXPECT_EQ(think_time(), before);
}

// A policy that is not told of a predecessor begins anew, and nothing is lost.
TEST(Succession, AStateOfAnotherPolicyIsPassedOver) {
  const SchedulerSettings settings = anticipation_settings(false);
  for (const PolicyKind* from : known_policies()) {
    for (const PolicyKind* to : known_policies()) {
      Side old(*from, settings, 3);
      Side fresh(*to, settings, 3);
      const TimePoint now = TimePoint{} + 1h;
      for (int i = 0; i < 100; ++i) {
        old.arrive(static_cast<std::uint32_t>(i) % kFlows, {65536}, 0, now);
        fresh.arrive(static_cast<std::uint32_t>(i) % kFlows, {65536}, 0, now);
      }
      SavedState all;
      old.scheduler().save_all(now, all);
      fresh.scheduler().restore_all(all, now);
      for (std::uint32_t app = 0; app < kFlows; ++app) {
        SavedState flow;
        old.scheduler().save(AppId{app}, now, flow);
        fresh.scheduler().restore(AppId{app}, flow, now);
      }
      fresh.scheduler().restored(now);
      for (TimePoint at = now; at < now + 60s; at += 5ms) fresh.turn(at, true);
      EXPECT_EQ(fresh.sent().size(), 100U) << from->name << " to " << to->name;
    }
  }
}

TEST(Succession, AnAccountThatIsMissingLeavesRecordsThatSumToZero) {
  AdapTbfAllocator allocator;
  const std::vector<AdapTbfAllocator::Demand> demands = {{.job = 0, .nodes = 4, .tokens = 5},
                                                         {.job = 1, .nodes = 1, .tokens = 500},
                                                         {.job = 2, .nodes = 2, .tokens = 300}};
  for (int period = 0; period < 5; ++period) (void)allocator.allocate(demands, 100);
  ASSERT_NE(allocator.record(0), 0);
  AdapTbfAllocator next;
  for (const AdapTbfAllocator::Job job : {1U, 2U}) {
    SavedState account;
    allocator.save(job, account);
    next.restore(job, account);
  }
  next.end_missing();
  EXPECT_EQ(next.record(0) + next.record(1) + next.record(2), 0);
}

}  // namespace
}  // namespace vpfs
