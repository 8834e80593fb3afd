// What every policy of the registry must do, whatever it decides.
#include <algorithm>
#include <bit>
#include <deque>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/registry.h"
#include "test/support/allocation_count.h"

namespace vpfs {
namespace {

// A scheduler under random use beside a plain record of what must be true of it.
class Exercise {
 public:
  Exercise(std::string_view policy, Depth depth, std::uint32_t flows, std::uint64_t seed)
      : scheduler_(std::move(make_scheduler(policy, {.depth = depth}).value())),
        depth_(depth),
        waiting_(flows),
        random_(seed) {
    for (std::uint32_t app = 0; app < flows; ++app) change_share(app);
  }

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  // From 1 to `most`, all magnitudes alike.
  std::uint64_t draw_magnitude(std::uint64_t most) {
    const std::uint64_t bits = draw(static_cast<std::uint64_t>(std::bit_width(most)));
    return std::min(most, (std::uint64_t{1} << bits) + draw(std::uint64_t{1} << bits));
  }

  void change_share(std::uint32_t app) {
    const auto weight = static_cast<std::uint32_t>(draw_magnitude(Share::kMaxWeight));
    scheduler_->set_share(AppId{app}, {.weight = weight});
  }

  void enqueue(IoRequest& request) {
    const auto app = static_cast<std::uint32_t>(draw(waiting_.size()));
    request = {.app = AppId{app}, .cost = draw_magnitude(kMaxCost), .arrival = now_};
    scheduler_->enqueue(request, now_);
    waiting_[app].push_back(&request);
    ++queued_;
  }

  // Sends what may be sent; the order inside each flow must be that of arrival.
  void dispatch_all() {
    for (;;) {
      const Scheduler::Decision decision = scheduler_->next(now_);
      if (decision.request == nullptr) {
        ASSERT_FALSE(can_send()) << "not work conserving";
        return;
      }
      ASSERT_TRUE(outstanding_.empty() || outstanding_.size() < depth_.requests);
      auto& queue = waiting_[std::to_underlying(decision.request->app)];
      ASSERT_FALSE(queue.empty()) << "left twice, or was never given";
      ASSERT_EQ(queue.front(), decision.request) << "order inside a flow";
      ASSERT_FALSE(decision.request->queued);
      queue.pop_front();
      --queued_;
      outstanding_cost_ += decision.request->cost;
      outstanding_.push_back(decision.request);
      ASSERT_TRUE(outstanding_.size() == 1 || outstanding_cost_ <= depth_.cost);
    }
  }

  void complete_one(std::vector<IoRequest*>& free) {
    if (outstanding_.empty()) return;
    std::swap(outstanding_[draw(outstanding_.size())], outstanding_.back());
    IoRequest* const request = outstanding_.back();
    outstanding_.pop_back();
    outstanding_cost_ -= request->cost;
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
    scheduler_->withdraw(*request, now_);
    EXPECT_FALSE(request->queued);
    free.push_back(request);
  }

  // Time stands still or jumps, but never goes back.
  void pass_time() {
    if (draw(2) == 0) now_ += Duration(static_cast<std::int64_t>(draw_magnitude(1ULL << 45)));
  }

  void check_status() {
    ASSERT_EQ(scheduler_->queued(), queued_);
    ASSERT_EQ(scheduler_->outstanding(), outstanding_.size());
    for (std::uint32_t app = 0; app < waiting_.size(); ++app) {
      const Scheduler::FlowState state = scheduler_->flow(AppId{app});
      Cost cost = 0;
      for (const IoRequest* request : waiting_[app]) cost += request->cost;
      Cost sent_cost = 0;
      std::size_t sent = 0;
      for (const IoRequest* request : outstanding_) {
        if (request->app != AppId{app}) continue;
        sent_cost += request->cost;
        ++sent;
      }
      ASSERT_EQ(state.queued, waiting_[app].size());
      ASSERT_EQ(state.queued_cost, cost);
      ASSERT_EQ(state.outstanding, sent);
      ASSERT_EQ(state.outstanding_cost, sent_cost);
      ASSERT_EQ(state.oldest, waiting_[app].empty() ? nullptr : waiting_[app].front());
      ASSERT_EQ(scheduler_->why_waiting(AppId{app}, now_).reason.empty(), waiting_[app].empty());
    }
  }

  [[nodiscard]] std::size_t flows() const { return waiting_.size(); }
  [[nodiscard]] bool drained() const { return queued_ == 0 && outstanding_.empty(); }

 private:
  // Whether some flow's head fits. Which head is next is the policy's business, so this only
  // says so where every head fits.
  [[nodiscard]] bool can_send() const {
    if (queued_ == 0) return false;
    if (outstanding_.empty()) return true;
    if (outstanding_.size() >= depth_.requests) return false;
    return std::ranges::all_of(waiting_, [this](const auto& queue) {
      return queue.empty() || (outstanding_cost_ <= depth_.cost &&
                               queue.front()->cost <= depth_.cost - outstanding_cost_);
    });
  }

  std::unique_ptr<Scheduler> scheduler_;
  Depth depth_;
  std::vector<std::deque<IoRequest*>> waiting_;
  std::vector<IoRequest*> outstanding_;
  Cost outstanding_cost_ = 0;
  std::size_t queued_ = 0;
  TimePoint now_ = {};
  std::mt19937_64 random_;
};

class Conformance : public ::testing::TestWithParam<std::string_view> {};

INSTANTIATE_TEST_SUITE_P(EveryPolicy, Conformance, ::testing::ValuesIn(scheduler_names()),
                         [](const auto& name) { return std::string(name.param); });

// Shares change while flows are backlogged, requests are withdrawn from anywhere, complete in any
// order and with any part of their cost done; weights span 1:1'000'000 and costs 1 B to 1 TiB.
TEST_P(Conformance, EveryRequestLeavesExactlyOnceAndInOrder) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 shape(seed * 7919);
    const Depth depth = {.requests = static_cast<std::uint32_t>(1 + shape() % 20),
                         .cost = shape() % 3 == 0 ? UINT64_MAX : std::uint64_t{1} << shape() % 44};
    Exercise exercise(GetParam(), depth, static_cast<std::uint32_t>(1 + shape() % 12), seed);
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
        exercise.change_share(static_cast<std::uint32_t>(exercise.draw(exercise.flows())));
      } else {
        exercise.dispatch_all();
      }
      if (step % 8 == 0) exercise.check_status();
      if (HasFatalFailure()) return;
    }
    for (std::size_t i = 0; i <= 2 * requests.size() && !exercise.drained(); ++i) {
      exercise.dispatch_all();
      exercise.complete_one(free);
      if (HasFatalFailure()) return;
    }
    exercise.check_status();
    ASSERT_TRUE(exercise.drained());
    ASSERT_EQ(std::set<IoRequest*>(free.begin(), free.end()).size(), requests.size());
  }
}

TEST_P(Conformance, NothingAllocatesOnceAFlowIsKnown) {
  constexpr std::uint32_t kFlows = 300;
  const auto scheduler = make_scheduler(GetParam(), {.depth = {.requests = 8}}).value();
  for (std::uint32_t app = 0; app < kFlows; ++app) {
    scheduler->set_share(AppId{app}, {.weight = app + 1});
  }
  std::vector<IoRequest> requests(3000);
  std::vector<IoRequest*> sent;
  sent.reserve(requests.size());
  const TimePoint now = {};
  const std::uint64_t before = allocation_count();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].app = AppId{static_cast<std::uint32_t>(i % kFlows)};
    requests[i].cost = 1 + i;
    scheduler->enqueue(requests[i], now);
  }
  for (std::size_t i = 0; i < requests.size(); i += 7) scheduler->withdraw(requests[i], now);
  scheduler->set_share(AppId{3}, {.weight = 9});
  std::size_t done = 0;
  while (scheduler->queued() + scheduler->outstanding() > 0) {
    while (IoRequest* const request = scheduler->next(now).request) sent.push_back(request);
    scheduler->complete(*sent[done], sent[done]->cost / 2, now);
    ++done;
  }
  (void)scheduler->flow(AppId{1});
  (void)scheduler->why_waiting(AppId{1}, now);
  EXPECT_EQ(allocation_count(), before);
  EXPECT_EQ(done, requests.size() - (requests.size() + 6) / 7);
}

TEST_P(Conformance, AnIdleSchedulerHasNothingToSay) {
  const auto scheduler = make_scheduler(GetParam(), {}).value();
  EXPECT_EQ(scheduler->next({}).request, nullptr);
  EXPECT_FALSE(scheduler->next({}).until.has_value());
  EXPECT_EQ(scheduler->queued(), 0U);
  EXPECT_EQ(scheduler->flow(AppId{17}).queued, 0U);
  EXPECT_EQ(scheduler->flow(AppId{17}).oldest, nullptr);
  EXPECT_TRUE(scheduler->why_waiting(AppId{17}, {}).reason.empty());
}

TEST_P(Conformance, FlowsMayAppearInAnyOrderWhileOthersAreBacklogged) {
  const auto scheduler = make_scheduler(GetParam(), {.depth = {.requests = 1}}).value();
  std::vector<IoRequest> requests(20);
  for (std::uint32_t i = 0; i < requests.size(); ++i) {
    const AppId app{(i * 37) % 101};
    scheduler->set_share(app, {.weight = 1});
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
  const auto scheduler = make_scheduler(GetParam(), {.depth = {.requests = 4, .cost = 1}}).value();
  scheduler->set_share(AppId{0}, {});
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
  EXPECT_EQ(scheduler.error().message, "unknown scheduling policy \"fair\" (known: fifo, sfq)");
}

}  // namespace
}  // namespace vpfs
