// Allocations come, change and expire while everything else changes, too.
#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stage/stage.h"

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;

constexpr Duration kHold = 1s;

struct Request : Held {
  TimePoint may_wait_from = {};  // its arrival, or later if its owner kept it meanwhile
};

// A stage whose device never is the bottleneck: only limits of coordinators hold requests.
class AllocationChurn {
 public:
  AllocationChurn(std::uint64_t seed, bool per_target) : random_(seed), per_target_(per_target) {
    stage_ = std::make_unique<Stage>(config(), now_);
    stage_->set_hold(kHold, now_);
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      pass(Duration(static_cast<std::int64_t>(draw(100'000'000))));
      switch (draw(10)) {
        case 0:
        case 1:
        case 2:
        case 3:
          for (std::uint64_t count = draw(20); count > 0; --count) come();
          break;
        case 4:
        case 5:
          allocate();
          break;
        case 6:
          disturb();
          break;
        case 7:
          end_some();
          break;
        case 8:
          if (draw(3) == 0) stage_->reconfigure(config(), now_);
          break;
        case 9:
          stage_->find_idle(100, now_);
          stage_->retire(100, now_);
          break;
      }
      release();
      check();
    }
  }
  void finish() {
    while (!kept_.empty()) again();
    release();
    pass(kHold);
    ASSERT_EQ(stage_->queued(), 0U) << "something waits for ever";
    while (!sent_.empty()) end(sent_.begin());
    ASSERT_EQ(stage_->outstanding(), 0U);
    ASSERT_EQ(came_, ended_);
    std::uint64_t done = stage_->virtual_pfs().retired().counters.done.all().requests;
    for (const AppId app : stage_->virtual_pfs().everybody()) {
      done += stage_->virtual_pfs().counters(app).done.all().requests;
    }
    ASSERT_EQ(done, ended_);
  }

  [[nodiscard]] Duration longest() const { return longest_; }
  [[nodiscard]] std::uint64_t passed() const { return passed_; }
  [[nodiscard]] const Allocations::Counts& counts() const { return stage_->allocations().counts(); }

 private:
  using Requests = std::list<Request>;

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  Config config() {
    Config config;
    constexpr std::array kPolicies = {"sfq", "sfq", "tbf", "edf", "fifo"};
    config.policy = kPolicies[draw(kPolicies.size())];
    config.scheduler.depth.requests = 1'000'000;
    config.scheduler.classes = {.mode = TrafficClasses::Mode{static_cast<std::uint8_t>(draw(3))},
                                .classes = {{.name = "x"}, {.name = "y"}}};
    config.scheduler_per_target = per_target_;
    config.cost.per_request = {};
    config.virtual_pfs = {{.name = "job-{jobid}", .share = {.weight = 3}}};
    for (const char* name : {"a", "b", "c"}) {
      if (draw(5) == 0) continue;
      config.virtual_pfs.push_back(
          {.name = name, .share = {.weight = static_cast<std::uint32_t>(1 + draw(5))}});
    }
    config.idle = 300ms;
    config.fallback = {.mode = Fallback::Mode{static_cast<std::uint8_t>(draw(3))},
                       .rate = {kMiB << draw(8)}};
    return config;
  }

  void come() {
    constexpr std::array kNames = {"a", "b", "c", "job-1", "job-2", "job-3"};
    const std::string name = kNames[draw(kNames.size())];
    const VirtualPfsId id =
        stage_
            ->find({.virtual_pfs = name, .declared_name = name.size() > 1 ? "job-{jobid}" : name},
                   now_)
            .id;
    known_[id] = name;
    Request& io = waiting_.emplace_back();
    io.app = id.app;
    io.generation = id.generation;
    io.traffic_class = static_cast<std::uint8_t>(draw(2));
    io.device = static_cast<std::uint32_t>(draw(3));
    io.size = io.asked = {1 + draw(kMiB)};
    io.cost = io.size.count;
    io.arrival = io.may_wait_from = now_;
    stage_->arrive(io, now_);
    ++came_;
  }

  void allocate() {
    std::vector<Allocation> all;
    for (const auto& [id, name] : known_) {
      if (draw(2) == 0) continue;
      Allocation& one = all.emplace_back(Allocation{.id = id, .limits = {}});
      if (draw(2) == 0) one.limits.bytes = BytesPerSecond{draw(3) == 0 ? 0 : draw(2 * kMiB)};
      if (draw(3) == 0) one.limits.operations = draw(10);
    }
    const Epoch epoch = {.term = term_, .sequence = draw(8) == 0 ? sequence_ : ++sequence_};
    const Cycle cycle = {.epoch = epoch,
                         .lease = Duration(static_cast<std::int64_t>(draw(2'000'000'000))),
                         .complete = draw(2) == 0};
    if (draw(20) == 0) ++term_, sequence_ = 0;
    const CycleAnswer answer = stage_->allocate(cycle, all, now_);
    for (const VirtualPfsId& gone : answer.unknown) {
      const bool removed =
          stage_->virtual_pfs().is_there(gone) && stage_->virtual_pfs()[gone.app].info->removed;
      ASSERT_TRUE(removed || !stage_->virtual_pfs().is_there(gone));
      if (!removed) known_.erase(gone);
    }
  }

  // An owner takes a request back and gives it again later.
  void disturb() {
    if (draw(2) == 0 && !kept_.empty()) return again();
    if (waiting_.empty()) return;
    auto any = std::next(waiting_.begin(), static_cast<std::ptrdiff_t>(draw(waiting_.size())));
    ASSERT_TRUE(stage_->take_back(*any, now_));
    kept_.splice(kept_.end(), waiting_, any);
  }
  void again() {
    Request& io = kept_.front();
    io.may_wait_from = std::max(io.may_wait_from, now_ - kHold / 2);
    stage_->arrive(io, now_);
    waiting_.splice(waiting_.end(), kept_, kept_.begin());
  }
  void end_some() {
    for (std::uint64_t count = draw(50); count > 0 && !sent_.empty(); --count) end(sent_.begin());
  }
  void end(Requests::iterator io) {
    stage_->end(*io, {.moved = io->size}, now_);
    sent_.erase(io);
    ++ended_;
  }

  // Time goes from one answer of release() to the next.
  void pass(Duration time) {
    const TimePoint end = now_ + time;
    while (until_ < end) {
      ASSERT_GT(until_, now_) << "it would be asked for ever";
      now_ = until_;
      release();
    }
    now_ = end;
    release();
  }
  void release() {
    std::vector<Held*> released;
    until_ = stage_->release(now_, released);
    for (Held* each : released) {
      auto* const io = static_cast<Request*>(each);
      const auto place =
          std::ranges::find_if(waiting_, [io](const Request& one) { return &one == io; });
      ASSERT_NE(place, waiting_.end()) << "it left twice, or was not waiting";
      longest_ = std::max(longest_, now_ - io->may_wait_from);
      passed_ += io->passed_limit ? 1 : 0;
      Stage::took_over(*io);
      sent_.splice(sent_.end(), waiting_, place);
    }
  }

  void check() const {
    ASSERT_EQ(stage_->queued(), waiting_.size());
    const Allocations& allocations = stage_->allocations();
    std::size_t limited = 0;
    for (const AppId app : stage_->virtual_pfs().everybody()) {
      const Limits limits = allocations.limits(app);
      limited += limits.any() ? 1 : 0;
      ASSERT_FALSE(limits.any() && stage_->virtual_pfs()[app].info->removed);
    }
    ASSERT_EQ(limited, allocations.limited().size());
  }

  std::mt19937_64 random_;
  bool per_target_;
  TimePoint now_ = TimePoint{} + 1h;
  std::unique_ptr<Stage> stage_;
  Requests waiting_;
  Requests kept_;  // by their owner
  Requests sent_;
  std::map<VirtualPfsId, std::string> known_;
  std::uint64_t term_ = 1;
  std::uint64_t sequence_ = 0;
  std::uint64_t came_ = 0;
  std::uint64_t ended_ = 0;
  std::uint64_t passed_ = 0;
  Duration longest_ = {};
  TimePoint until_ = kNever;
};

// Cycles, some of them outdated, leases that end, policies, shares, classes, lanes and virtual
// PFSes that come and go, requests that are taken back: every request leaves once, and in the first
// half of the time that it may be held.
TEST(AllocationsChurn, NoRequestIsLostOrDoubledOrWaitsForMoreThanHalfOfTheHoldTime) {
  std::uint64_t passed = 0;
  Allocations::Counts sum;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    AllocationChurn churn(seed, seed % 2 == 0);
    churn.run(300);
    churn.finish();
    ASSERT_FALSE(::testing::Test::HasFatalFailure());
    ASSERT_LE(churn.longest(), kHold / 2 + 10ns) << "each other lane may be given way once";
    passed += churn.passed();
    sum.applied += churn.counts().applied;
    sum.outdated += churn.counts().outdated;
    sum.unsupported += churn.counts().unsupported;
    sum.unknown += churn.counts().unknown;
    sum.lease_ends += churn.counts().lease_ends;
  }
  EXPECT_GT(passed, 1000U);
  EXPECT_GT(sum.applied, 1000U);
  EXPECT_GT(sum.outdated, 100U);
  EXPECT_GT(sum.unsupported, 100U);
  EXPECT_GT(sum.unknown, 100U);
  EXPECT_GT(sum.lease_ends, 200U);
}

}  // namespace
}  // namespace vpfs::stage
