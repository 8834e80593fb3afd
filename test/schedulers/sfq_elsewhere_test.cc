// Service elsewhere [DSFQ]: flows on several servers that share by what they get in total.
#include <cmath>
#include <deque>
#include <iostream>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/registry.h"
#include "schedulers/sfq.h"
#include "test/support/flow_simulation.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kDepth = 4;
constexpr std::uint64_t kSize = 64 * kKiB;
constexpr Duration kStep = 1ms;  // between the coordinator's messages

// Servers of the same speed, each behind its own scheduler. A coordinator tells every scheduler
// what its flows got from the others.
class Cluster {
 public:
  // uses[flow]: the servers that it has requests for all the time.
  Cluster(std::size_t servers, std::uint64_t capacity, const std::vector<std::uint32_t>& weights,
          const std::vector<std::vector<bool>>& uses, std::uint64_t size = kSize)
      : flows_(weights.size()), told_(servers, std::vector<Cost>(weights.size(), 0)) {
    for (std::size_t server = 0; server < servers; ++server) {
      std::vector<FlowWork> works;
      for (std::size_t flow = 0; flow < flows_; ++flow) {
        works.push_back({.share = {.weight = weights[flow]},
                         .least_size = size,
                         .most_size = size,
                         .first = uses[flow][server] ? Duration::zero() : 10'000h});
      }
      schedulers_.push_back(make_scheduler("sfq", {.depth = {.requests = kDepth}}).value());
      simulations_.push_back(std::make_unique<FlowSimulation>(
          *schedulers_.back(), ModelledServer::Settings{.cost_per_second = capacity}, works,
          server));
    }
  }

  void run(Duration length) {
    for (Duration passed = {}; passed < length; passed += kStep) {
      for (const auto& simulation : simulations_) simulation->run(kStep);
      for (std::uint32_t flow = 0; flow < flows_; ++flow) tell(flow);
    }
  }
  FlowSimulation& server(std::size_t index) { return *simulations_[index]; }
  [[nodiscard]] Cost total(std::uint32_t flow) const {
    Cost sum = 0;
    for (const auto& simulation : simulations_) sum += simulation->sent_cost(flow);
    return sum;
  }

 private:
  void tell(std::uint32_t flow) {
    const Cost sum = total(flow);
    for (std::size_t server = 0; server < schedulers_.size(); ++server) {
      const Cost elsewhere = sum - simulations_[server]->sent_cost(flow);
      const Cost more = elsewhere - std::exchange(told_[server][flow], elsewhere);
      if (more == 0) continue;
      schedulers_[server]->served_elsewhere(AppId{flow}, more, simulations_[server]->now());
    }
  }

  std::size_t flows_;
  std::vector<std::vector<Cost>> told_;
  std::vector<std::unique_ptr<Scheduler>> schedulers_;
  std::vector<std::unique_ptr<FlowSimulation>> simulations_;
};

// Two flows, some servers for each alone and some for both. The shared ones are divided so that the
// totals follow the weights, or go to one flow as a whole where that does not suffice.
TEST(SfqElsewhere, TotalsFollowTheWeightsAsFarAsTheTopologyAllows) {
  constexpr std::uint64_t kCapacity = 100 * kMiB;
  constexpr double kSeconds = 0.5;
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const std::size_t only_first = random() % 3;
    const std::size_t only_second = random() % 4;
    const std::size_t shared = 1 + random() % 3;
    const std::size_t servers = only_first + only_second + shared;
    const std::vector<std::uint32_t> weights = {static_cast<std::uint32_t>(1 + random() % 3),
                                                static_cast<std::uint32_t>(1 + random() % 3)};
    std::vector<std::vector<bool>> uses(2, std::vector<bool>(servers));
    for (std::size_t server = 0; server < servers; ++server) {
      uses[0][server] = server < only_first + shared;
      uses[1][server] = server >= only_first;
    }
    Cluster cluster(servers, kCapacity, weights, uses);
    cluster.run(500ms);

    const double each = kCapacity * kSeconds;
    const double wanted =
        each * static_cast<double>(servers) * weights[0] / (weights[0] + weights[1]);
    const double ideal = std::clamp(wanted, static_cast<double>(only_first) * each,
                                    static_cast<double>(only_first + shared) * each);
    // On every shared server: the SFQ(D) bound, and what was served in a step before it was told.
    const double slack =
        static_cast<double>(shared) *
        (2.0 * (kDepth + 1) * kSize * 3 + 2.0 * kCapacity * 1e-3 * static_cast<double>(servers));
    const double off = std::abs(static_cast<double>(cluster.total(0)) - ideal);
    worst = std::max(worst, off / slack);
    EXPECT_LE(off, slack) << "weights " << weights[0] << " and " << weights[1] << ", servers "
                          << only_first << " + " << shared << " + " << only_second;
  }
  std::cout << "seeds 1 to 100: at most " << worst << " of the slack\n";
}

TEST(SfqElsewhere, OneApplicationOnTwoServersAndOneOnThreeGetEqualTotals) {
  Cluster cluster(4, 100 * kMiB, {1, 1}, {{true, true, false, false}, {false, true, true, true}});
  cluster.run(2s);
  const auto first = static_cast<double>(cluster.total(0));
  EXPECT_NEAR(first, 400.0 * kMiB, 2.0 * kMiB);
  EXPECT_NEAR(first, static_cast<double>(cluster.total(1)), 2.0 * kMiB);
}

// A flow that gets far more elsewhere than the other one ever can is not shut out: between two of
// its requests the other one gets no more than kMaxDelay, by weight, and a few requests.
TEST(SfqElsewhere, TheDelayBoundPreventsStarvation) {
  for (const std::uint32_t weight : {1U, 3U}) {
    Cluster cluster(
        6, 4 * kGiB, {weight, 1},
        {{true, true, false, false, false, false}, {false, true, true, true, true, true}},
        4 * kMiB);
    Cost between = 0;
    Cost most = 0;
    std::uint64_t count = 0;
    cluster.server(1).on_sent = [&](const IoRequest& request) {
      if (request.app == AppId{0}) {
        between += request.cost;
        most = std::max(most, between);
      } else {
        between = 0;
        ++count;
      }
    };
    cluster.run(3s);
    // One request of each flow, and what the server did in a step before it was told.
    EXPECT_LE(most, Sfq::kMaxDelay * weight + 4 * kMiB * (weight + 2)) << weight;
    EXPECT_GE(count, 10U / weight);
    EXPECT_GE(most, Sfq::kMaxDelay * weight / 2) << "it should lag behind, though";
  }
}

class SfqElsewhereTest : public ::testing::Test {
 protected:
  void share(std::uint32_t flow, std::uint32_t weight) {
    ASSERT_TRUE(scheduler_->set_share(AppId{flow}, {.weight = weight}, {}).has_value());
  }
  void add(std::uint32_t flow, int count) {
    for (int i = 0; i < count; ++i) {
      IoRequest& request = requests_.emplace_back();
      request = {.app = AppId{flow}, .size = {kMiB}, .cost = kMiB};
      scheduler_->enqueue(request, {});
    }
  }
  // How many of `count` requests were of flow 0.
  int serve(int count) {
    int first = 0;
    for (int i = 0; i < count; ++i) {
      IoRequest* const request = scheduler_->next({}).request;
      if (request == nullptr) break;
      if (request->app == AppId{0}) ++first;
      scheduler_->complete(*request, request->cost, {});
    }
    return first;
  }

  std::unique_ptr<Scheduler> scheduler_ = make_scheduler("sfq", {}).value();
  std::deque<IoRequest> requests_;
};

TEST_F(SfqElsewhereTest, ServiceElsewhereCountsLikeServiceHere) {
  share(0, 1);
  share(1, 1);
  add(0, 100);
  add(1, 100);
  EXPECT_EQ(serve(20), 10);
  scheduler_->served_elsewhere(AppId{0}, 10 * kMiB, {});
  EXPECT_LE(serve(10), 1);
  EXPECT_NEAR(serve(20), 10, 1);
}

TEST_F(SfqElsewhereTest, AFlowThatGotMoreElsewhereWhileItHadNothingHereWaitsWhenItComes) {
  share(0, 1);
  share(1, 1);
  add(1, 100);
  scheduler_->served_elsewhere(AppId{0}, 20 * kMiB, {});
  EXPECT_EQ(serve(10), 0);
  add(0, 100);
  EXPECT_LE(serve(10), 1);
  EXPECT_NEAR(serve(20), 10, 1);
}

TEST_F(SfqElsewhereTest, ANewFlowOfAnOldAppIdOwesNothing) {
  share(0, 1);
  share(1, 1);
  add(1, 100);
  scheduler_->served_elsewhere(AppId{0}, kGiB, {});
  scheduler_->remove(AppId{0}, {});
  share(0, 1);
  add(0, 100);
  EXPECT_NEAR(serve(20), 10, 1);
}

}  // namespace
}  // namespace vpfs
