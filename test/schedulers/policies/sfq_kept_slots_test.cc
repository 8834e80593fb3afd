// Which time counts as that of kept slots (docs/schedulers.md): an account of its own, from what
// the scheduler lets go.
#include <deque>
#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "schedulers/policies/anticipation_settings.h"
#include "schedulers/policies/registry.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kLargest = 256 * kKiB;

// A data server that serves one request after the other, and two flows: one that thinks after each
// answer, and one with many requests of different sizes. Time goes by in steps.
class KeptSlots {
 public:
  static constexpr Duration kStep = 20us;

  KeptSlots(Depth depth, std::uint64_t least_in_a_request, bool has_minimum, std::uint64_t seed)
      : depth_(depth), least_(least_in_a_request), random_(seed) {
    SchedulerSettings settings = {.depth = depth};
    settings.own.set(AnticipationSettings{.on = true});
    scheduler_ = make_scheduler("sfq", settings).value();
    Share others = {.weight = 1};
    if (has_minimum) others.min = {40 * kMiB};
    (void)scheduler_->set_share(kThinks, {.weight = 8}, now_);
    (void)scheduler_->set_share(kOthers, others, now_);
    submit(requests_.front());
    for (std::size_t i = 1; i < requests_.size(); ++i) submit(requests_[i]);
  }

  void step() {
    now_ += kStep;
    if (returns_ <= now_) {
      returns_ = kNever;
      submit(requests_.front());
    }
    if (!at_server_.empty() && busy_until_ <= now_) {
      IoRequest& done = *at_server_.front();
      at_server_.pop_front();
      cost_ -= counted(done.cost);
      busy_until_ = now_ + Duration(static_cast<std::int64_t>(done.cost * 4));  // 256 KiB: 1 ms
      scheduler_->complete(done, done.cost, now_);
      done.app == kThinks ? void(returns_ = now_ + 400us) : submit(done);
    }
    while (IoRequest* const request = scheduler_->next(now_).request) {
      at_server_.push_back(request);
      cost_ += counted(request->cost);
    }
    counted_last_ = is_kept_back();
    if (counted_last_) kept_ += kStep;
  }
  // All requests of the others leave the queue, and come back later. The scheduler is not asked
  // meanwhile.
  void withdraw_the_others_for(Duration time) {
    std::vector<IoRequest*> taken;
    while (const IoRequest* const oldest = scheduler_->flow(kOthers).oldest) {
      taken.push_back(const_cast<IoRequest*>(oldest));
      scheduler_->withdraw(*taken.back(), now_);
    }
    // From now on no request is kept back.
    if (counted_last_) kept_ -= kStep;
    now_ += time;
    for (IoRequest* const each : taken) submit(*each);
  }

  [[nodiscard]] Duration kept() const { return kept_; }
  [[nodiscard]] bool is_keeping() const { return counted_last_; }
  // For how long the head of the others was held, up to the end of this step.
  [[nodiscard]] HoldTimes held() const { return scheduler_->held(kOthers, now_ + kStep); }
  [[nodiscard]] Duration reported() const {
    return scheduler_->server(now_ + kStep).get<Duration>("slots_kept").value();
  }

 private:
  static constexpr AppId kThinks = AppId{0};
  static constexpr AppId kOthers = AppId{1};

  [[nodiscard]] Cost counted(Cost cost) const {
    return std::min(cost, depth_.cost - depth_.cost / 2);
  }
  void submit(IoRequest& request) {
    const Cost cost = least_ + random_() % (kLargest - least_ + 1);
    request = {.app = &request == &requests_.front() ? kThinks : kOthers,
               .size = {cost},
               .cost = cost,
               .arrival = now_};
    scheduler_->enqueue(request, now_);
  }
  // Whether a request waits that the depth would let go.
  [[nodiscard]] bool is_kept_back() const {
    const IoRequest* const next = scheduler_->flow(kOthers).oldest;
    // A flow whose request is there is not expected.
    if (next == nullptr || scheduler_->flow(kThinks).queued > 0) return false;
    if (at_server_.empty()) return true;
    return at_server_.size() < depth_.requests && cost_ + counted(next->cost) <= depth_.cost;
  }

  Depth depth_;
  std::uint64_t least_;
  std::mt19937_64 random_;
  std::unique_ptr<Scheduler> scheduler_;
  TimePoint now_ = TimePoint(1s);
  std::deque<IoRequest> requests_ = std::deque<IoRequest>(17);  // the first one is the thinker's
  std::deque<IoRequest*> at_server_;
  Cost cost_ = 0;
  TimePoint busy_until_ = {};
  TimePoint returns_ = kNever;
  Duration kept_ = {};
  bool counted_last_ = false;  // the time from now on
};

TEST(SfqKeptSlots, OnlyTheTimeCountsInWhichARequestWouldHaveGone) {
  const Depth depths[] = {{.requests = 1},
                          {.requests = 8},
                          {.requests = 16, .cost = 3 * kLargest},
                          {.requests = 16, .cost = kLargest}};
  for (const Depth& depth : depths) {
    for (const std::uint64_t least : {kLargest / 16, kLargest}) {
      for (const bool has_minimum : {false, true}) {
        KeptSlots slots(depth, least, has_minimum, 1);
        for (int i = 1; i <= 200'000; ++i) {
          slots.step();
          if (i % 977 == 0) slots.withdraw_the_others_for(3ms);
        }
        SCOPED_TRACE(::testing::Message()
                     << depth.requests << " requests, cost " << depth.cost << ", least " << least
                     << (has_minimum ? ", with a minimum" : ""));
        EXPECT_EQ(slots.reported(), slots.kept());
        if (!has_minimum && least == kLargest) EXPECT_GT(slots.kept(), 10ms);
      }
    }
  }
}

// The head that is kept back waits for another flow and not for room at the server.
TEST(SfqKeptSlots, AHeadThatIsKeptBackIsHeldByAKeptSlot) {
  for (const std::uint32_t depth : {1U, 8U}) {
    KeptSlots slots({.requests = depth}, kLargest, false, 1);
    HoldTimes before = slots.held();
    for (int i = 0; i < 200'000; ++i) {
      slots.step();
      const HoldTimes now = slots.held();
      if (slots.is_keeping()) {
        EXPECT_EQ(now.kept_slot - before.kept_slot, KeptSlots::kStep);
        EXPECT_EQ(now.sum() - before.sum(), KeptSlots::kStep);
      } else {
        EXPECT_EQ(now.kept_slot, before.kept_slot);
      }
      before = now;
    }
    EXPECT_GT(slots.kept(), 10ms);
  }
}

}  // namespace
}  // namespace vpfs
