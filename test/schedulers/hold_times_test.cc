// For how long heads are held, by reason.
#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/adaptbf.h"
#include "schedulers/policies/edf.h"
#include "schedulers/policies/registry.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

class HoldTimesTest : public ::testing::TestWithParam<std::string_view> {
 protected:
  static constexpr std::uint64_t kSize = kMiB;

  void make(std::string_view policy, SchedulerSettings settings = {.depth = {.requests = 1}}) {
    settings.own.of<EdfSettings>().capacity = 1000 * kMiB;
    settings.own.of<AdapTbfSettings>().capacity.configured = 1000 * kMiB;
    scheduler_ = make_scheduler(policy, settings).value();
  }
  void share(std::uint32_t flow, const Share& share = {}) {
    EXPECT_TRUE(scheduler_->set_share(AppId{flow}, share, now_).has_value());
  }
  IoRequest& add(std::uint32_t flow, std::uint8_t of_class = 0) {
    IoRequest& request = requests_.emplace_back();
    request = {.app = AppId{flow},
               .traffic_class = of_class,
               .size = {kSize},
               .cost = kSize,
               .arrival = now_};
    scheduler_->enqueue(request, now_);
    return request;
  }
  void add(std::uint32_t flow, int count) {
    for (int i = 0; i < count; ++i) add(flow);
  }
  // Completes the request at the server and sends the next one, if any; returns its flow.
  int send_next() {
    if (sent_ != nullptr) scheduler_->complete(*sent_, sent_->cost, now_);
    sent_ = scheduler_->next(now_).request;
    return sent_ == nullptr ? -1 : static_cast<int>(sent_->app);
  }
  [[nodiscard]] HoldTimes held(std::uint32_t flow) const {
    return scheduler_->held(AppId{flow}, now_);
  }

  TimePoint now_ = TimePoint{} + 77s;
  std::unique_ptr<Scheduler> scheduler_;
  std::deque<IoRequest> requests_;
  IoRequest* sent_ = nullptr;
};

void expect_times(const HoldTimes& held, const HoldTimes& expected) {
  EXPECT_EQ(held.limit, expected.limit);
  EXPECT_EQ(held.share, expected.share);
  EXPECT_EQ(held.depth, expected.depth);
  EXPECT_EQ(held.traffic_class, expected.traffic_class);
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, HoldTimesTest, ::testing::ValuesIn(scheduler_names()),
                         [](const auto& name) { return std::string(name.param); });

TEST_P(HoldTimesTest, AFlowAloneIsHeldByTheDepthOnly) {
  make(GetParam());
  share(0);
  add(0, 20);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(send_next(), 0);
    now_ += 3ms;
    expect_times(held(0), {.depth = (i + 1) * 3ms});
  }
  expect_times(scheduler_->held(AppId{5}, now_), {});
}

TEST_P(HoldTimesTest, TwoFlowsThatAlternateAreHeldByDepthAndShareAlike) {
  make(GetParam());
  for (const std::uint32_t flow : {0U, 1U}) share(flow);
  for (int i = 0; i < 20; ++i) add(static_cast<std::uint32_t>(i % 2));
  ASSERT_EQ(send_next(), 0);
  now_ += 3ms;
  // No request was sent since the second request of flow 0 became the head.
  expect_times(held(0), {.depth = 3ms});
  expect_times(held(1), {.share = 3ms});
  for (int i = 1; i < 11; ++i) {
    ASSERT_EQ(send_next(), i % 2);
    now_ += 3ms;
  }
  expect_times(held(0), {.share = 15ms, .depth = 18ms});
  expect_times(held(1), {.share = 18ms, .depth = 15ms});
}

TEST_P(HoldTimesTest, AFlowWithoutAHeadIsNotHeld) {
  make(GetParam());
  share(0);
  IoRequest& request = add(0);
  now_ += 2ms;
  scheduler_->withdraw(request, now_);
  now_ += 1s;
  expect_times(held(0), {.depth = 2ms});
  add(0, 1);
  ASSERT_EQ(send_next(), 0);
  now_ += 1s;
  expect_times(held(0), {.depth = 2ms});
}

TEST_P(HoldTimesTest, AFlowThatIsRemovedHasNoTimesUntilItsNumberIsUsedAgain) {
  make(GetParam());
  share(0);
  add(0, 3);
  now_ += 2ms;
  scheduler_->remove(AppId{0}, now_);
  expect_times(held(0), {});
  now_ += 2ms;
  ASSERT_EQ(send_next(), 0);
  now_ += 2ms;
  expect_times(held(0), {});
  share(0);
  expect_times(held(0), {});
  now_ += 5ms;
  expect_times(held(0), {.depth = 5ms});
  share(0, {.weight = 7});  // a new share does not restart the wait
  expect_times(held(0), {.depth = 5ms});
}

TEST_F(HoldTimesTest, TheLimitCountsUntilItAllowsTheHeadAndNotUntilTheNextCall) {
  for (const auto policy : {"sfq", "tbf"}) {
    SCOPED_TRACE(policy);
    sent_ = nullptr;
    make(policy);
    share(0, {.rate = {kSize}, .burst = {kSize}});
    share(1);
    add(0, 2);
    ASSERT_EQ(send_next(), 0);  // the next one may go in a second
    now_ += 500ms;
    add(1, 1);
    ASSERT_EQ(send_next(), 1);
    now_ += 100ms;
    expect_times(held(0), {.limit = 600ms});
    now_ += 700ms;
    expect_times(held(0), {.limit = 1s, .depth = 300ms});
    expect_times(held(1), {});
    ASSERT_EQ(send_next(), 0);
    expect_times(held(0), {.limit = 1s, .depth = 300ms});
  }
}

TEST_F(HoldTimesTest, ALimitThatIsLiftedWhileTheHeadWaitsCountsUntilThen) {
  for (const auto policy : {"sfq", "tbf"}) {
    SCOPED_TRACE(policy);
    sent_ = nullptr;
    make(policy);
    share(0, {.rate = {kSize}, .burst = {kSize}});
    add(0, 2);
    ASSERT_EQ(send_next(), 0);
    now_ += 250ms;
    share(0);
    now_ += 100ms;
    expect_times(held(0), {.limit = 250ms, .depth = 100ms});
  }
}

TEST_F(HoldTimesTest, ALimitThatIsSetWhileTheHeadWaitsCountsFromThenOn) {
  make("sfq");
  share(0);
  add(0, 3);
  ASSERT_EQ(send_next(), 0);
  now_ += 100ms;
  share(0, {.rate = {kSize}, .burst = {kSize}});  // the bucket is full: the head still may go
  now_ += 100ms;
  ASSERT_EQ(send_next(), 0);
  now_ += 100ms;
  expect_times(held(0), {.limit = 100ms, .depth = 200ms});
}

TEST_F(HoldTimesTest, AdapTbfHoldsByTheBucketsThatItSets) {
  make("adaptbf");
  share(0, {.own = {{"nodes", 1}}});
  for (int i = 0; i < 40; ++i) add(0);
  ASSERT_EQ(send_next(), 0);
  // The job has 100 MiB in the next period, and a quarter of it may go at once.
  now_ += 100ms;
  for (int i = 0; i < 25; ++i) ASSERT_EQ(send_next(), 0);
  ASSERT_EQ(send_next(), -1);
  now_ += 1ms;
  EXPECT_EQ(held(0).limit, 1ms);
  EXPECT_EQ(held(0).depth, 100ms);
  EXPECT_EQ(held(0).sum(), 101ms);
}

TEST_F(HoldTimesTest, EdfHoldsByTheArrivalCurveUntilTheRequestStarts) {
  make("edf");
  const Share promised = {.rate = {kSize}, .burst = {kSize}, .latency = 10s};
  for (const std::uint32_t flow : {0U, 1U}) share(flow, promised);
  share(2, {.rate = {kSize}, .burst = {8 * kSize}, .latency = 5s});
  add(0, 2);
  ASSERT_EQ(send_next(), 0);  // the next one starts in a second
  now_ += 500ms;
  expect_times(held(0), {.limit = 500ms});
  add(2, 1);
  ASSERT_EQ(send_next(), 2);
  now_ += 700ms;
  expect_times(held(0), {.limit = 1s, .depth = 200ms});
  add(2, 1);
  ASSERT_EQ(send_next(), 2);
  now_ += 100ms;
  expect_times(held(0), {.limit = 1s, .share = 100ms, .depth = 200ms});
}

// When a request uses unclaimed capacity before its start, all starts move earlier by as much.
TEST_F(HoldTimesTest, EdfHoldsNoLongerThanUntilAStartThatMovedToAnEarlierTime) {
  make("edf");
  share(0, {.rate = {kSize}, .burst = {kSize}, .latency = 10s});
  share(1, {.rate = {2 * kSize}, .burst = {kSize}, .latency = 10s});
  add(0, 2);
  add(1, 2);
  ASSERT_GE(send_next(), 0);
  ASSERT_GE(send_next(), 0);
  now_ += 100ms;
  // The second requests start in 1 s and in 0.5 s. The latter goes now, 400 ms early.
  ASSERT_EQ(send_next(), 1);
  expect_times(held(0), {.limit = 100ms});
  now_ += 800ms;
  expect_times(held(0), {.limit = 600ms, .depth = 300ms});
  ASSERT_EQ(send_next(), 0);
  expect_times(held(0), {.limit = 600ms, .depth = 300ms});
}

TEST_F(HoldTimesTest, AnotherTrafficClassCountsWhileItWasTheLastToBeServed) {
  make("sfq", {.depth = {.requests = 1},
               .classes = {.mode = TrafficClasses::Mode::apportion,
                           .classes = {{.name = "a", .share = 1}, {.name = "b", .share = 1}}}});
  for (const std::uint32_t flow : {0U, 1U, 2U}) share(flow);
  for (int i = 0; i < 4; ++i) add(0, std::uint8_t{0});
  for (int i = 0; i < 4; ++i) add(1, std::uint8_t{1});
  ASSERT_EQ(send_next(), 0);
  now_ += 1ms;
  expect_times(held(0), {.depth = 1ms});
  expect_times(held(1), {.traffic_class = 1ms});
  add(2, std::uint8_t{1});
  now_ += 2ms;
  expect_times(held(2), {.depth = 2ms});
  ASSERT_EQ(send_next(), 1);
  now_ += 4ms;
  expect_times(held(0), {.depth = 3ms, .traffic_class = 4ms});
  expect_times(held(1), {.depth = 4ms, .traffic_class = 3ms});
  expect_times(held(2), {.share = 4ms, .depth = 2ms});
}

TEST_F(HoldTimesTest, AFlowInSeveralClassesIsHeldInEach) {
  make("fifo", {.depth = {.requests = 1},
                .classes = {.mode = TrafficClasses::Mode::strict,
                            .classes = {{.name = "a", .share = 1}, {.name = "b", .share = 1}}}});
  share(0);
  for (int i = 0; i < 3; ++i) add(0, std::uint8_t{0});
  add(0, std::uint8_t{1});
  ASSERT_EQ(send_next(), 0);
  now_ += 1ms;
  ASSERT_EQ(send_next(), 0);
  now_ += 1ms;
  expect_times(held(0), {.depth = 2ms, .traffic_class = 2ms});
}

TEST_F(HoldTimesTest, TimesOfSeveralAddUpByReason) {
  HoldTimes sum = {
      .limit = 1ns, .share = 2ns, .kept_slot = 3ns, .depth = 4ns, .traffic_class = 5ns};
  sum += {.limit = 10ns, .share = 20ns, .kept_slot = 30ns, .depth = 40ns, .traffic_class = 50ns};
  std::vector<Duration> each;
  for (const HoldReason reason : kHoldReasons) each.push_back(sum.of(reason));
  EXPECT_EQ(each, (std::vector<Duration>{11ns, 22ns, 33ns, 44ns, 55ns}));
  EXPECT_EQ(sum.sum(), 165ns);
}

// A scheduler under random use beside the definition, which is followed from event to event.
class Driver {
 public:
  Driver(std::string_view policy, SchedulerSettings settings, std::uint64_t seed)
      : policy_(policy),
        classes_(std::max<std::size_t>(settings.classes.classes.size(), 1)),
        random_(seed) {
    settings.depth.requests = static_cast<std::uint32_t>(1 + draw(4));
    settings.own.of<EdfSettings>().capacity = 1000 * kMiB;
    settings.own.of<AdapTbfSettings>().capacity.configured = 100 * kMiB;
    scheduler_ = make_scheduler(policy, settings).value();
    for (std::uint32_t flow = 0; flow < kFlows; ++flow) change_share(flow, false);
    queues_.resize(kFlows * classes_);
    before_.resize(kFlows);
  }

  void run(int steps, bool with_limits) {
    for (int step = 0; step < steps; ++step) {
      const std::uint64_t choice = draw(16);
      if (choice < 5) {
        enqueue();
      } else if (choice < 7) {
        withdraw();
      } else if (choice < 10) {
        send();
      } else if (choice < 14) {
        complete();
      } else if (choice < 15 && with_limits) {
        change_share(static_cast<std::uint32_t>(draw(kFlows)), draw(2) == 0);
      }
      look();
      if (draw(3) > 0) pass(Duration(static_cast<std::int64_t>(draw(1U << draw(28)))));
      check();
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GT(total_.depth, Duration::zero());
    EXPECT_GT(total_.share, Duration::zero());
    if (classes_ > 1) EXPECT_GT(total_.traffic_class, Duration::zero());
    if (with_limits && find_policy(policy_)->knows(ShareField::operations)) {
      EXPECT_GT(total_.limit, Duration::zero());
    }
  }

 private:
  static constexpr std::uint32_t kFlows = 6;
  static constexpr std::size_t kMostQueued = 40;

  struct Queue {
    std::deque<IoRequest*> requests;
    int sends = 0;  // since the head became one, or was allowed
    TimePoint allowed = {};
    HoldTimes times;
  };

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  Queue& queue_of(const IoRequest& request) {
    return queues_[std::to_underlying(request.app) * classes_ + request.traffic_class];
  }

  void change_share(std::uint32_t flow, bool limited) {
    Share share = {.weight = static_cast<std::uint32_t>(1 + draw(10))};
    if (limited) {
      if (draw(2) == 0) share.rate = {kMiB << draw(6)};
      if (share.rate.count == 0 || draw(2) == 0) share.operations = 1 + draw(200);
      share.burst = {1 + draw(4 * kMiB)};
      share.realtime = draw(2) == 0;
      if (draw(2) == 0) share.latency = Duration(static_cast<std::int64_t>(draw(1U << 31)));
    }
    if (draw(4) == 0) share.min = {kMiB};
    (void)scheduler_->set_share(AppId{flow}, share, now_);
  }

  void enqueue() {
    if (queued_ == kMostQueued) return;
    IoRequest& request = storage_.emplace_back();
    request = {.app = AppId{static_cast<std::uint32_t>(draw(kFlows))},
               .traffic_class = static_cast<std::uint8_t>(draw(classes_)),
               .size = {1 + draw(kMiB)},
               .cost = 1 + draw(kMiB),
               .arrival = now_};
    Queue& queue = queue_of(request);
    if (queue.requests.empty()) queue.sends = 0;
    queue.requests.push_back(&request);
    ++queued_;
    scheduler_->enqueue(request, now_);
  }
  void withdraw() {
    Queue& queue = queues_[draw(queues_.size())];
    if (queue.requests.empty()) return;
    const auto place = draw(2) == 0 ? 0 : draw(queue.requests.size());
    IoRequest* const request = queue.requests[place];
    queue.requests.erase(queue.requests.begin() + static_cast<std::ptrdiff_t>(place));
    if (place == 0 && policy_ != "fifo") queue.sends = 0;
    --queued_;
    scheduler_->withdraw(*request, now_);
  }
  void send() {
    while (IoRequest* const request = scheduler_->next(now_).request) {
      outstanding_.push_back(request);
      last_class_ = request->traffic_class;
      for (Queue& queue : queues_) ++queue.sends;
      Queue& queue = queue_of(*request);
      ASSERT_EQ(queue.requests.front(), request);
      queue.requests.pop_front();
      queue.sends = 0;
      --queued_;
      look();
    }
  }
  void complete() {
    if (outstanding_.empty()) return;
    scheduler_->complete(*outstanding_.front(), outstanding_.front()->cost, now_);
    outstanding_.pop_front();
  }

  // Notes until when limits hold the heads.
  void look() {
    if (!exact()) return;
    for (std::uint32_t flow = 0; flow < kFlows; ++flow) {
      Queue& queue = queues_[flow];
      queue.allowed = now_;
      if (queue.requests.empty()) continue;
      queue.allowed = scheduler_->why_waiting(AppId{flow}, now_).eligible.value_or(now_);
      if (queue.allowed > now_) queue.sends = 0;
    }
  }
  void pass(Duration time) {
    const TimePoint then = now_ + time;
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      Queue& queue = queues_[i];
      if (queue.requests.empty()) continue;
      const TimePoint allowed = std::clamp(queue.allowed, now_, then);
      queue.times.limit += allowed - now_;
      const bool own = i % classes_ == last_class_;
      Duration& rest = queue.sends == 0 ? queue.times.depth
                       : own            ? queue.times.share
                                        : queue.times.traffic_class;
      rest += then - allowed;
    }
    now_ = then;
  }
  // Checks only the sum and the direction if another traffic class may use a limit's tokens or
  // starts may move.
  [[nodiscard]] bool exact() const {
    return classes_ == 1 && (policy_ == "sfq" || policy_ == "tbf" || policy_ == "fifo");
  }
  void check() {
    total_ = {};
    for (std::uint32_t flow = 0; flow < kFlows; ++flow) {
      HoldTimes expected;
      for (std::size_t i = 0; i < classes_; ++i) expected += queues_[flow * classes_ + i].times;
      const HoldTimes held = scheduler_->held(AppId{flow}, now_);
      ASSERT_EQ(held.sum(), expected.sum()) << "flow " << flow;
      if (exact() || policy_ == "fifo") ASSERT_EQ(held, expected) << "flow " << flow;
      for (const HoldReason reason : kHoldReasons) {
        ASSERT_GE(held.of(reason), before_[flow].of(reason)) << "went back";
      }
      before_[flow] = held;
      total_ += held;
    }
  }

  std::string_view policy_;
  std::size_t classes_;
  std::mt19937_64 random_;
  std::unique_ptr<Scheduler> scheduler_;
  std::deque<IoRequest> storage_;
  std::vector<Queue> queues_;  // by flow and class
  std::deque<IoRequest*> outstanding_;
  std::size_t queued_ = 0;
  std::uint8_t last_class_ = 0;
  std::vector<HoldTimes> before_;
  HoldTimes total_;
  TimePoint now_ = TimePoint{} + 1s;
};

TEST_P(HoldTimesTest, UnderRandomUseTheTimesAreThoseOfTheDefinition) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Driver(GetParam(), {}, seed).run(1000, true);
    if (HasFailure()) return;
  }
}

TEST_P(HoldTimesTest, WithClassesThatShareLimitsTheTimesAddUpAndNeverGoBack) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    TrafficClasses classes = {.classes = {{.name = "a", .share = 1}, {.name = "b", .share = 5}}};
    classes.mode = seed % 2 == 0 ? TrafficClasses::Mode::apportion : TrafficClasses::Mode::strict;
    if (seed % 4 == 1) classes.max_starvation = 1ms;
    Driver(GetParam(), {.classes = classes}, seed).run(1000, true);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace vpfs
