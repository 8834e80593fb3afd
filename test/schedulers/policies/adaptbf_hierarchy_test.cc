// The order of jobs that have their tokens under AdapTBF.

#include <array>
#include <deque>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/adaptbf.h"
#include "test/schedulers/capacities.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

Share of_nodes(std::uint64_t nodes, std::optional<std::uint8_t> rank = std::nullopt) {
  return {.rank = rank, .own = {{"nodes", nodes}}};
}

// The order of service of jobs with these shares. All had a request in the period before, then ask
// in the order of their numbers, `gap` apart, and the server was busy until then.
std::vector<std::uint32_t> order_of(const std::vector<Share>& shares, Duration gap = 1us) {
  constexpr Duration kPeriod = 100ms;
  AdapTbf policy({.period = kPeriod, .capacity = {.configured = kServerSpeed}});
  std::deque<IoRequest> requests;
  TimePoint now = TimePoint{} + 10s;
  const auto ask = [&](std::uint32_t index) {
    IoRequest& made = requests.emplace_back();
    made.app = AppId{index};
    made.size = {64 * kKiB};
    made.cost = 64 * kKiB;
    made.arrival = now;
    made.order = requests.size();
    policy.enqueue(made, now);
  };
  const auto serve = [&] {
    IoRequest& next = *policy.head(now).request;
    policy.dispatch(next, now);
    policy.complete(next, next.cost, now);
    return static_cast<std::uint32_t>(next.app);
  };
  for (std::uint32_t job = 0; job < shares.size(); ++job) {
    EXPECT_TRUE(policy.set_share(AppId{job}, shares[job], now));
    ask(job);
  }
  for (std::size_t i = 0; i < shares.size(); ++i) (void)serve();
  now += kPeriod;
  for (std::uint32_t job = 0; job < shares.size(); ++job, now += gap) ask(job);
  std::vector<std::uint32_t> order;
  for (std::size_t i = 0; i < shares.size(); ++i) order.push_back(serve());
  return order;
}

TEST(AdapTbfHierarchy, RanksFollowNodesUnlessTheShareSaysOtherwise) {
  using Order = std::vector<std::uint32_t>;
  EXPECT_EQ(order_of({of_nodes(2), of_nodes(3), of_nodes(1), of_nodes(100)}), (Order{3, 1, 0, 2}));
  EXPECT_EQ(order_of({{.weight = 2}, {.weight = 3}, of_nodes(1)}), (Order{1, 0, 2}))
      << "the weight stands for the nodes";
  EXPECT_EQ(order_of({of_nodes(5), of_nodes(5), of_nodes(6)}), (Order{2, 0, 1}));
  EXPECT_EQ(order_of({of_nodes(2), of_nodes(1, 0), of_nodes(3)}), (Order{1, 2, 0}))
      << "beside the highest";
  EXPECT_EQ(order_of({of_nodes(2), of_nodes(9, 1), of_nodes(3)}), (Order{2, 0, 1}));
  EXPECT_EQ(order_of({of_nodes(9, 2), of_nodes(1, 1)}), (Order{1, 0}));
}

TEST(AdapTbfHierarchy, AHundredNumbersOfNodesAreAHierarchyToo) {
  std::vector<Share> shares;
  for (std::uint64_t job = 0; job < 100; ++job) shares.push_back(of_nodes(job + 1));
  const std::vector<std::uint32_t> order = order_of(shares, 100ns);
  for (std::uint32_t i = 0; i < 63; ++i) EXPECT_EQ(order[i], 99 - i);
  for (std::uint32_t i = 63; i < 100; ++i) EXPECT_EQ(order[i], i - 63) << "the last place";
}

TEST(AdapTbfHierarchy, AJobWhoseTokensCameASliceEarlierGoesFirstWhateverTheNodes) {
  EXPECT_EQ(order_of({of_nodes(1), of_nodes(1000)}, 1ms), (std::vector<std::uint32_t>{0, 1}));
}

TEST(AdapTbfHierarchy, TheHierarchyFollowsSharesThatChange) {
  AdapTbf policy({.period = 100ms, .capacity = {.configured = kServerSpeed}});
  TimePoint now = TimePoint{} + 10s;
  const auto first_of = [&](std::uint32_t one, std::uint32_t other) {
    std::array<IoRequest, 4> requests;
    const auto ask = [&](IoRequest& made, std::uint32_t job, std::uint64_t order) {
      made.app = AppId{job};
      made.cost = 64 * kKiB;
      made.arrival = now;
      made.order = order;
      policy.enqueue(made, now);
    };
    const auto serve = [&] {
      IoRequest& next = *policy.head(now).request;
      policy.dispatch(next, now);
      policy.complete(next, next.cost, now);
      return static_cast<std::uint32_t>(next.app);
    };
    ask(requests[0], one, 0);
    ask(requests[1], other, 1);
    (void)serve();
    (void)serve();
    now += 100ms;
    ask(requests[2], one, 2);
    ask(requests[3], other, 3);
    const std::uint32_t first = serve();
    (void)serve();
    now += 100ms;
    return first;
  };
  ASSERT_TRUE(policy.set_share(AppId{0}, of_nodes(4), now));
  ASSERT_TRUE(policy.set_share(AppId{1}, of_nodes(5), now));
  EXPECT_EQ(first_of(0, 1), 1U);
  ASSERT_TRUE(policy.set_share(AppId{0}, of_nodes(6), now));
  EXPECT_EQ(first_of(1, 0), 0U);
  ASSERT_TRUE(policy.set_share(AppId{1}, of_nodes(5, 0), now));
  EXPECT_EQ(first_of(1, 0), 1U) << "both are first";
  policy.remove(AppId{0}, now);
  ASSERT_TRUE(policy.set_share(AppId{1}, of_nodes(2), now));
  EXPECT_EQ(first_of(0, 1), 1U) << "what has ended is a job of one node";
}

}  // namespace
}  // namespace vpfs
