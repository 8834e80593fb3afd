// What sfq does without anticipation, against SFQ(D) as its paper has it: start and finish tags of
// every request from its arrival on, and a search through all of them.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/wide.h"
#include "schedulers/policies/anticipation_settings.h"
#include "schedulers/policies/registry.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

// Costs are multiples of this, and weights divide it, so no tag of either side is rounded.
constexpr std::uint32_t kUnit = 120;
constexpr std::uint32_t kWeights[] = {1, 2, 3, 4, 5, 8, 40};

class ReferenceSfq {
 public:
  explicit ReferenceSfq(std::size_t flows) : weights_(flows, 1), last_finish_(flows) {}

  void set_weight(std::size_t flow, std::uint32_t weight) { weights_[flow] = weight; }
  void enqueue(const IoRequest& request) {
    const std::size_t flow = std::to_underlying(request.app);
    const Wide start = std::max(v_, last_finish_[flow]);
    const Wide amount = Wide{request.cost} / weights_[flow];
    queued_.push_back({.request = &request, .flow = flow, .start = start, .amount = amount});
    last_finish_[flow] = start + amount;
  }
  // What goes next; nullptr: nothing is queued.
  const IoRequest* next() {
    const auto least = std::ranges::min_element(queued_, {}, &Entry::start);  // the first of equals
    if (least == queued_.end()) return nullptr;
    const Entry sent = *least;
    queued_.erase(least);
    ++outstanding_;
    v_ = sent.start;
    largest_finish_ = std::max(largest_finish_, sent.start + sent.amount);
    return sent.request;
  }
  void complete() {
    --outstanding_;
    end_if_idle();
  }
  // The others have the tags that they would have had without it.
  void withdraw(const IoRequest& request) {
    const auto at = std::ranges::find(queued_, &request, &Entry::request);
    const Entry gone = *at;
    for (auto later = queued_.erase(at); later != queued_.end(); ++later) {
      if (later->flow == gone.flow) later->start -= gone.amount;
    }
    last_finish_[gone.flow] -= gone.amount;
    end_if_idle();
  }

 private:
  struct Entry {
    const IoRequest* request = nullptr;
    std::size_t flow = 0;
    Wide start = 0;
    Wide amount = 0;
  };

  void end_if_idle() {
    if (queued_.empty() && outstanding_ == 0) v_ = std::max(v_, largest_finish_);
  }

  std::vector<std::uint32_t> weights_;
  std::vector<Wide> last_finish_;
  std::vector<Entry> queued_;  // in order of arrival
  std::size_t outstanding_ = 0;
  Wide v_ = 0;
  Wide largest_finish_ = 0;
};

// One random workload, given to both.
class Twins {
 public:
  Twins(const AnticipationSettings& anticipation, std::uint64_t seed)
      : random_(seed),
        flows_(1 + draw(8)),
        depth_(1 + draw(16)),
        most_queued_(1 + draw(60)),
        reference_(flows_) {
    SchedulerSettings settings = {.depth = {.requests = static_cast<std::uint32_t>(depth_)}};
    settings.own.set(anticipation);
    scheduler_ = make_scheduler("sfq", settings).value();
    for (std::uint32_t flow = 0; flow < flows_; ++flow) set_weight(flow);
  }

  void step() {
    now_ += std::chrono::microseconds(draw(300));
    const std::uint64_t what = draw(100);
    if (what < 50 && queued_.size() < most_queued_) {
      enqueue();
    } else if (what < 90) {
      complete();
    } else if (what < 97) {
      withdraw();
    } else if (what == 99) {
      set_weight(static_cast<std::uint32_t>(draw(flows_)));
    }
    send();
  }
  [[nodiscard]] int sent() const { return sent_; }

 private:
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  void set_weight(std::uint32_t flow) {
    const std::uint32_t weight = kWeights[draw(std::size(kWeights))];
    ASSERT_TRUE(scheduler_->set_share(AppId{flow}, {.weight = weight}, now_).has_value());
    reference_.set_weight(flow, weight);
  }
  void enqueue() {
    const auto flow = static_cast<std::uint32_t>(draw(flows_));
    const Cost cost = kUnit * (1 + draw(draw(4) == 0 ? 10'000 : 50));
    requests_.push_back({.app = AppId{flow}, .size = {cost}, .cost = cost, .arrival = now_});
    queued_.push_back(&requests_.back());
    scheduler_->enqueue(*queued_.back(), now_);
    reference_.enqueue(*queued_.back());
  }
  void complete() {
    if (outstanding_.empty()) return;
    const auto at = outstanding_.begin() + static_cast<std::ptrdiff_t>(draw(outstanding_.size()));
    scheduler_->complete(**at, (*at)->cost, now_);
    outstanding_.erase(at);
    reference_.complete();
  }
  void withdraw() {
    if (queued_.empty()) return;
    const auto at = queued_.begin() + static_cast<std::ptrdiff_t>(draw(queued_.size()));
    scheduler_->withdraw(**at, now_);
    reference_.withdraw(**at);
    queued_.erase(at);
  }
  void send() {
    for (;;) {
      const Scheduler::Decision decision = scheduler_->next(now_);
      const bool has_room = outstanding_.size() < depth_;
      const IoRequest* const wanted = has_room ? reference_.next() : nullptr;
      ASSERT_EQ(decision.request, wanted) << "after " << sent_ << " requests";
      if (wanted == nullptr) {
        EXPECT_EQ(decision.until, kNever);
        return;
      }
      ++sent_;
      outstanding_.push_back(decision.request);
      std::erase(queued_, decision.request);
    }
  }

  std::mt19937_64 random_;
  std::size_t flows_;
  std::size_t depth_;
  std::size_t most_queued_;
  ReferenceSfq reference_;
  std::unique_ptr<Scheduler> scheduler_;
  std::deque<IoRequest> requests_;
  std::vector<IoRequest*> queued_;
  std::vector<IoRequest*> outstanding_;
  TimePoint now_ = TimePoint(1s);
  int sent_ = 0;
};

TEST(SfqOff, SendsInTheOrderOfThePaper) {
  int sent = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Twins twins({.on = false}, seed);
    for (int i = 0; i < 400 && !HasFatalFailure(); ++i) twins.step();
    if (HasFailure()) return;
    sent += twins.sent();
  }
  EXPECT_GT(sent, 40'000);
}

}  // namespace
}  // namespace vpfs
