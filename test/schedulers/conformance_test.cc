// The rules for every policy of the registry, whatever it decides.
#include <algorithm>
#include <bit>
#include <deque>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "schedulers/policies/adaptbf.h"
#include "schedulers/policies/edf.h"
#include "schedulers/policies/registry.h"
#include "schedulers/policies/sfq.h"
#include "test/support/allocation_count.h"
#include "test/support/round_robin.h"

namespace vpfs {
namespace {

SchedulerSettings settings_of(Depth depth) {
  return {.depth = depth,
          .own = {EdfSettings{.capacity = 1000 * kMiB},
                  AdapTbfSettings{.capacity = {.configured = Share::kMaxRate}}}};
}

constexpr std::string_view kAnticipating = "sfq_anticipating";

// A scheduler under random use beside a plain record of its expected state.
class Exercise {
 public:
  Exercise(const PolicyKind& policy, const SchedulerSettings& settings, std::uint32_t flows,
           std::uint64_t seed)
      : policy_(policy),
        scheduler_(make_scheduler(policy, settings)),
        depth_(settings.depth),
        conserving_(settings.own.of<AdapTbfSettings>().work_conserving),
        classes_(settings.classes.mode == TrafficClasses::Mode::none
                     ? 1
                     : settings.classes.classes.size()),
        waiting_(flows * classes_),
        limited_(flows),
        allocated_(flows),
        random_(seed) {
    for (std::uint32_t app = 0; app < flows; ++app) change_share(app);
  }

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  // From 1 to `most`, all magnitudes alike.
  std::uint64_t draw_magnitude(std::uint64_t most) {
    const std::uint64_t bits = draw(static_cast<std::uint64_t>(std::bit_width(most)));
    return std::min(most, (std::uint64_t{1} << bits) + draw(std::uint64_t{1} << bits));
  }

  // Sets any field of a share, known to the policy or not. Rates are at least 1 MiB/s, so that no
  // request waits longer than the clock can tell.
  void change_share(std::uint32_t app) {
    Share share = {.weight = static_cast<std::uint32_t>(draw_magnitude(Share::kMaxWeight))};
    if (draw(2) == 0) {
      if (draw(2) == 0) share.rate = {kMiB + draw_magnitude(Share::kMaxRate - kMiB)};
      if (draw(3) == 0) share.operations = 1 + draw_magnitude(1'000'000);
      share.burst = {draw_magnitude(kGiB)};
      share.burst_operations = draw_magnitude(100);
      if (draw(3) == 0) share.min = {kMiB + draw_magnitude(kGiB)};
      share.realtime = draw(2) == 0;
      share.rank = static_cast<std::uint8_t>(draw(Share::kMaxRank + 1));
      if (draw(2) == 0)
        share.latency = Duration(static_cast<std::int64_t>(draw_magnitude(1U << 30)));
      if (draw(4) == 0) share.finish_bytes = {draw_magnitude(kGiB)};
      share.finish_by = now_ + std::chrono::seconds(draw(1000));
      share.own = {{"nodes", draw_magnitude(1U << 20)}};
    }
    limited_[app] = share.rate.count > 0 || share.operations > 0;
    (void)scheduler_->set_share(AppId{app}, share, now_);
  }

  void remove(std::uint32_t app) {
    scheduler_->remove(AppId{app}, now_);
    limited_[app] = false;
    allocated_[app] = false;
  }
  // Any limits, zero among them. A policy without them says so and changes nothing.
  void allocate(std::uint32_t app) {
    Limits limits;
    if (draw(2) == 0) limits.bytes = BytesPerSecond{draw(4) == 0 ? 0 : draw_magnitude(kGiB)};
    if (draw(2) == 0) limits.operations = draw(1000);
    ASSERT_EQ(scheduler_->set_limits(AppId{app}, limits, now_), policy_.caps);
    allocated_[app] = policy_.caps && limits.any();
    if (draw(4) != 0) return;
    scheduler_->set_hold(Duration(static_cast<std::int64_t>(draw_magnitude(1ULL << 40))), now_);
  }
  // Service elsewhere may be as large as a request.
  void count_elsewhere(std::uint32_t app) {
    const auto period = Duration(static_cast<std::int64_t>(draw_magnitude(1ULL << 62)));
    scheduler_->served_elsewhere(AppId{app}, draw_magnitude(kMaxCost), period, now_);
  }
  void remove_all() {
    for (std::uint32_t app = 0; app < flows(); ++app) remove(app);
  }

  void enqueue(IoRequest& request) {
    const auto app = static_cast<std::uint32_t>(draw(flows()));
    const auto of_class = static_cast<std::uint8_t>(draw(classes_));
    request = {.app = AppId{app},
               .kind = IoKind{static_cast<std::uint8_t>(draw(3))},
               .traffic_class = of_class,
               .cost = draw_magnitude(kMaxCost),
               .arrival = now_};
    request.size = {draw(10) == 0 ? 0 : draw_magnitude(request.cost)};
    scheduler_->enqueue(request, now_);
    queue_of(request).push_back(&request);
    ++queued_;
  }

  // Sends what may be sent; the order inside each flow must be that of arrival.
  void dispatch_all() {
    for (;;) {
      const Scheduler::Decision decision = scheduler_->next(now_);
      if (decision.request == nullptr) {
        until_ = decision.until;
        check_nothing_may_go();
        return;
      }
      ASSERT_TRUE(outstanding_.empty() || outstanding_.size() < depth_.requests);
      auto& queue = queue_of(*decision.request);
      ASSERT_FALSE(queue.empty()) << "left twice, or was never given";
      ASSERT_EQ(queue.front(), decision.request) << "order inside a flow";
      ASSERT_FALSE(decision.request->queued);
      ASSERT_EQ(decision.request->sent, now_);
      queue.pop_front();
      --queued_;
      outstanding_cost_ += counted(*decision.request);
      outstanding_.push_back(decision.request);
      ASSERT_TRUE(outstanding_.size() == 1 || outstanding_cost_ <= depth_.cost);
    }
  }

  // A request's part of the depth in cost: at most half of it.
  [[nodiscard]] Cost counted(const IoRequest& request) const {
    return std::min(request.cost, depth_.cost - depth_.cost / 2);
  }

  void complete_one(std::vector<IoRequest*>& free) {
    if (outstanding_.empty()) return;
    std::swap(outstanding_[draw(outstanding_.size())], outstanding_.back());
    IoRequest* const request = outstanding_.back();
    outstanding_.pop_back();
    outstanding_cost_ -= counted(*request);
    if (draw(8) == 0) {
      scheduler_->charge_more(*request, {.cost = draw_magnitude(kMaxCost), .size = {draw(kMiB)}},
                              now_);
    }
    const Cost done = draw(3) == 0 ? draw(request->cost + 1) : request->cost;
    scheduler_->complete(*request, done, now_);
    free.push_back(request);
  }

  void withdraw_one(std::vector<IoRequest*>& free) {
    auto& queue = waiting_[draw(waiting_.size())];
    if (queue.empty()) return;
    const auto place = queue.begin() + static_cast<std::ptrdiff_t>(draw(queue.size()));
    IoRequest* const request = *place;
    queue.erase(place);
    --queued_;
    draw(2) == 0 ? scheduler_->let_pass(*request, now_) : scheduler_->withdraw(*request, now_);
    EXPECT_FALSE(request->queued);
    free.push_back(request);
  }

  // Time stops or jumps, but never goes back.
  void pass_time() {
    if (draw(2) == 0) now_ += Duration(static_cast<std::int64_t>(draw_magnitude(1ULL << 45)));
  }
  // Goes to the time at which the scheduler wants to be asked again, if any.
  void pass_wait() {
    if (until_ != kNever) now_ = std::max(now_, until_);
  }

  void check_status() {
    ASSERT_EQ(scheduler_->queued(), queued_);
    ASSERT_EQ(scheduler_->outstanding(), outstanding_.size());
    for (std::uint32_t app = 0; app < flows(); ++app) {
      const FlowState state = scheduler_->flow(AppId{app});
      std::size_t waiting = 0;
      const IoRequest* oldest = nullptr;
      for (std::size_t i = app * classes_; i < (app + 1) * classes_; ++i) {
        waiting += waiting_[i].size();
        if (waiting_[i].empty()) continue;
        if (oldest == nullptr || waiting_[i].front()->arrival < oldest->arrival) {
          oldest = waiting_[i].front();
        }
      }
      const auto sent = std::ranges::count(outstanding_, AppId{app}, &IoRequest::app);
      ASSERT_EQ(state.queued, waiting);
      ASSERT_EQ(state.outstanding, static_cast<std::size_t>(sent));
      ASSERT_EQ(state.oldest, oldest);
      const WaitReason why = scheduler_->why_waiting(AppId{app}, now_);
      ASSERT_EQ(why.reason.empty(), waiting == 0);
      if (why.eligible) ASSERT_GT(*why.eligible, now_) << why.reason;
      (void)scheduler_->report(AppId{app}, now_);
      ASSERT_GE(scheduler_->held(AppId{app}, now_).sum(), Duration::zero());
    }
  }

  [[nodiscard]] std::size_t flows() const { return limited_.size(); }
  [[nodiscard]] bool drained() const { return queued_ == 0 && outstanding_.empty(); }

 private:
  std::deque<IoRequest*>& queue_of(const IoRequest& request) {
    return waiting_[std::to_underlying(request.app) * classes_ + request.traffic_class];
  }

  // Whether every flow's head fits: which head is next is the policy's decision.
  [[nodiscard]] bool every_head_fits() const {
    if (queued_ == 0) return false;
    if (outstanding_.empty()) return true;
    if (outstanding_.size() >= depth_.requests) return false;
    return std::ranges::all_of(waiting_, [this](const auto& queue) {
      return queue.empty() || (outstanding_cost_ <= depth_.cost &&
                               counted(*queue.front()) <= depth_.cost - outstanding_cost_);
    });
  }

  // The policy is work conserving except for limits, and a wait names its time.
  void check_nothing_may_go() {
    if (!every_head_fits()) return;
    const bool keeps_slots = policy_.name == kAnticipating && classes_ == 1;
    const bool waits_for_time = keeps_slots ? true
                                : policy_.name == "adaptbf"
                                    ? !conserving_
                                    : (policy_.knows(ShareField::operations) &&
                                       std::ranges::find(limited_, true) != limited_.end()) ||
                                          std::ranges::find(allocated_, true) != allocated_.end();
    ASSERT_TRUE(waits_for_time) << "not work conserving";
    ASSERT_NE(until_, kNever) << "would wait for ever";
    ASSERT_GT(until_, now_);
  }

  const PolicyKind& policy_;
  std::unique_ptr<Scheduler> scheduler_;
  Depth depth_;
  bool conserving_;  // adaptbf
  std::size_t classes_;
  std::vector<std::deque<IoRequest*>> waiting_;  // by flow and class
  std::vector<bool> limited_;
  std::vector<bool> allocated_;
  std::vector<IoRequest*> outstanding_;
  Cost outstanding_cost_ = 0;
  std::size_t queued_ = 0;
  TimePoint now_ = {};
  TimePoint until_ = kNever;  // of the last answer without a request
  std::mt19937_64 random_;
};

// None, apportioned and strict classes in turn.
TrafficClasses random_classes(std::uint64_t seed) {
  TrafficClasses classes = {.classes = {{.name = "a", .share = 1},
                                        {.name = "b", .share = 1000},
                                        {.name = "c", .share = 7}}};
  classes.mode = TrafficClasses::Mode{static_cast<std::uint8_t>(seed % 3)};
  if (seed % 2 == 0) classes.max_starvation = std::chrono::milliseconds(seed);
  return classes;
}

class Conformance : public ::testing::TestWithParam<const PolicyKind*> {};

// RoundRobin stands for policies that vpfs does not know.
PolicyKind anticipating_kind() {
  PolicyKind kind = Sfq::kKind;
  kind.name = kAnticipating;
  kind.make = [](const SchedulerSettings& settings, RateLimits& limits,
                 Scheduler::Part part) -> std::unique_ptr<Policy> {
    const bool keeps = settings.classes.mode == TrafficClasses::Mode::none;
    return std::make_unique<Sfq>(limits, part.user,
                                 AnticipationSettings{.on = true, .max_loss = keeps ? 100U : 0U});
  };
  return kind;
}

std::vector<const PolicyKind*> policies_under_test() {
  static const PolicyKind kAnticipatingSfq = anticipating_kind();
  std::vector<const PolicyKind*> policies = policies_with_round_robin();
  policies.push_back(&kAnticipatingSfq);
  return policies;
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, Conformance, ::testing::ValuesIn(policies_under_test()),
                         [](const auto& policy) { return std::string(policy.param->name); });

// Shares and a coordinator's limits change while flows are backlogged, requests are withdrawn from
// anywhere, complete in any order and with any part of their cost done; weights span 1:1'000'000
// and costs 1 B to 1 TiB.
TEST_P(Conformance, EveryRequestLeavesExactlyOnceAndInOrder) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 shape(seed * 7919);
    const Depth depth = {.requests = static_cast<std::uint32_t>(1 + shape() % 20),
                         .cost = shape() % 3 == 0 ? UINT64_MAX : std::uint64_t{1} << shape() % 44};
    SchedulerSettings settings = settings_of(depth);
    settings.classes = random_classes(seed);
    settings.own.of<AdapTbfSettings>().work_conserving = seed % 2 == 0;
    Exercise exercise(*GetParam(), settings, static_cast<std::uint32_t>(1 + shape() % 12), seed);
    std::vector<IoRequest> requests(64);
    std::vector<IoRequest*> free;
    for (IoRequest& request : requests) free.push_back(&request);
    for (int step = 0; step < 400; ++step) {
      exercise.pass_time();
      const std::uint64_t choice = exercise.draw(16);
      if (choice < 7 && !free.empty()) {
        exercise.enqueue(*free.back());
        free.pop_back();
      } else if (choice < 12) {
        exercise.complete_one(free);
      } else if (choice < 13) {
        exercise.withdraw_one(free);
      } else if (choice < 14) {
        const auto app = static_cast<std::uint32_t>(exercise.draw(exercise.flows()));
        exercise.draw(4) == 0 ? exercise.remove(app) : exercise.change_share(app);
        for (std::uint64_t i = exercise.draw(8); i > 0; --i) exercise.count_elsewhere(app);
        for (std::uint64_t i = exercise.draw(3); i > 0; --i) exercise.allocate(app);
      } else {
        exercise.dispatch_all();
      }
      if (step % 8 == 0) exercise.check_status();
      if (HasFatalFailure()) return;
    }
    if (seed % 2 == 0) exercise.remove_all();
    for (std::size_t i = 0; i <= 200 * requests.size() && !exercise.drained(); ++i) {
      exercise.dispatch_all();
      exercise.pass_wait();
      exercise.complete_one(free);
      if (HasFatalFailure()) return;
    }
    exercise.check_status();
    ASSERT_TRUE(exercise.drained());
    ASSERT_EQ(std::set<IoRequest*>(free.begin(), free.end()).size(), requests.size());
  }
}

// One busy period of many flows, longer than any period of a policy. Returns how many requests were
// done.
std::size_t busy_period(Scheduler& scheduler, std::vector<IoRequest>& requests,
                        std::vector<IoRequest*>& sent, std::uint32_t flows, TimePoint& now) {
  sent.clear();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].app = AppId{static_cast<std::uint32_t>(i % flows)};
    requests[i].cost = 1 + i;
    requests[i].size = {1 + i};
    requests[i].arrival = now;
    scheduler.enqueue(requests[i], now);
  }
  for (std::size_t i = 0; i < requests.size(); i += 7) scheduler.withdraw(requests[i], now);
  std::size_t done = 0;
  while (scheduler.queued() + scheduler.outstanding() > 0) {
    while (IoRequest* const request = scheduler.next(now).request) sent.push_back(request);
    now += std::chrono::milliseconds(1);
    if (done == sent.size()) continue;
    scheduler.complete(*sent[done], sent[done]->cost / 2, now);
    ++done;
  }
  return done;
}

TEST_P(Conformance, NothingAllocatesOnceItIsWarm) {
  constexpr std::uint32_t kFlows = 300;
  const auto scheduler = make_scheduler(*GetParam(), settings_of({.requests = 8}));
  for (std::uint32_t app = 0; app < kFlows; ++app) {
    Share share = {.weight = app + 1, .burst = {1000}, .own = {{"nodes", app + 1}}};
    if (app % 3 == 0) share.rate = {1000 * kKiB};
    if (app % 5 == 0) share.min = {100 * kKiB};
    if (app % 10 == 0) share.latency = std::chrono::seconds(10);
    (void)scheduler->set_share(AppId{app}, share, {});
    if (app % 7 == 0) (void)scheduler->set_limits(AppId{app}, {.operations = 1000}, {});
  }
  std::vector<IoRequest> requests(3000);
  std::vector<IoRequest*> sent;
  sent.reserve(requests.size());
  TimePoint now = {};
  (void)busy_period(*scheduler, requests, sent, kFlows, now);
  const std::uint64_t before = allocation_count();
  const std::size_t done = busy_period(*scheduler, requests, sent, kFlows, now);
  (void)scheduler->set_share(AppId{3}, {.weight = 9}, now);
  (void)scheduler->set_limits(AppId{0}, {.bytes = BytesPerSecond{kMiB}}, now);
  (void)scheduler->flow(AppId{1});
  (void)scheduler->why_waiting(AppId{1}, now);
  EXPECT_EQ(allocation_count(), before);
  EXPECT_EQ(done, requests.size() - (requests.size() + 6) / 7);
}

// A policy that cannot enforce limits refuses them, and they hold nothing.
TEST_P(Conformance, WhatAPolicySaysAboutLimitsIsTrue) {
  const auto scheduler = make_scheduler(*GetParam(), settings_of({.requests = 4}));
  (void)scheduler->set_share(AppId{0}, {}, {});
  EXPECT_EQ(scheduler->set_limits(AppId{0}, {.operations = 0}, {}), GetParam()->caps);
  IoRequest request = {.size = {1}, .cost = 1};
  scheduler->enqueue(request, {});
  EXPECT_EQ(scheduler->next({}).request == nullptr, GetParam()->caps);
  EXPECT_EQ(scheduler->set_limits(AppId{0}, {}, {}), GetParam()->caps);
  if (GetParam()->caps) EXPECT_EQ(scheduler->next({}).request, &request);
}

TEST_P(Conformance, WhatAPolicySaysAboutServiceElsewhereIsTrue) {
  const auto scheduler = make_scheduler(*GetParam(), settings_of({.requests = 1}));
  std::vector<IoRequest> requests(2);
  for (std::uint32_t app = 0; app < 2; ++app) {
    (void)scheduler->set_share(AppId{app}, {}, {});
    requests[app] = {.app = AppId{app}, .size = {kKiB}, .cost = kKiB};
    scheduler->enqueue(requests[app], {});
  }
  scheduler->served_elsewhere(AppId{0}, kMiB, std::chrono::seconds(1), {});
  EXPECT_EQ(scheduler->next({}).request, &requests[GetParam()->elsewhere ? 1 : 0]);
}

TEST_P(Conformance, AnIdleSchedulerHasNothingToSay) {
  const auto scheduler = make_scheduler(*GetParam(), {});
  EXPECT_EQ(scheduler->next({}).request, nullptr);
  EXPECT_EQ(scheduler->next({}).until, kNever);
  EXPECT_EQ(scheduler->queued(), 0U);
  EXPECT_EQ(scheduler->flow(AppId{17}).queued, 0U);
  EXPECT_EQ(scheduler->flow(AppId{17}).oldest, nullptr);
  EXPECT_TRUE(scheduler->why_waiting(AppId{17}, {}).reason.empty());
}

TEST_P(Conformance, FlowsMayAppearInAnyOrderWhileOthersAreBacklogged) {
  const auto scheduler = make_scheduler(*GetParam(), settings_of({.requests = 1}));
  std::vector<IoRequest> requests(20);
  for (std::uint32_t i = 0; i < requests.size(); ++i) {
    const AppId app{(i * 37) % 101};
    (void)scheduler->set_share(app, {}, {});
    requests[i].app = app;
    requests[i].cost = 4096;
    scheduler->enqueue(requests[i], {});
  }
  std::set<IoRequest*> left;
  while (IoRequest* const request = scheduler->next({}).request) {
    left.insert(request);
    scheduler->complete(*request, request->cost, {});
  }
  EXPECT_EQ(left.size(), requests.size());
}

TEST_P(Conformance, OneRequestLargerThanTheDepthStillPasses) {
  const auto scheduler = make_scheduler(*GetParam(), settings_of({.requests = 4, .cost = 1}));
  (void)scheduler->set_share(AppId{0}, {}, {});
  std::vector<IoRequest> requests(3);
  for (IoRequest& request : requests) {
    request.cost = kMaxCost;
    scheduler->enqueue(request, {});
  }
  for (IoRequest& request : requests) {
    ASSERT_EQ(scheduler->next({}).request, &request);
    EXPECT_EQ(scheduler->next({}).request, nullptr);
    scheduler->complete(request, 0, {});
  }
}

TEST(Registry, AnUnknownPolicyNamesTheKnownOnes) {
  const auto scheduler = make_scheduler("fair", {});
  ASSERT_FALSE(scheduler.has_value());
  std::vector<std::string_view> names = scheduler_names();
  EXPECT_TRUE(std::ranges::is_sorted(names)) << "people read them";
  EXPECT_NE(std::ranges::find(names, "sfq"), names.end());
  EXPECT_EQ(scheduler.error().message,
            fmt::format("unknown scheduling policy \"fair\" (known: {})", fmt::join(names, ", ")));
}

}  // namespace
}  // namespace vpfs
