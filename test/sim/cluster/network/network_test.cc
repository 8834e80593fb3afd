#include "sim/cluster/network/network.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/sim/cluster/network/equal_shares.h"
#include "test/sim/cluster/network/routes.h"
#include "test/sim/start_time.h"

namespace vpfs::sim {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TrafficClass kStorage = TrafficClass::storage;

class NetworkTest : public ::testing::Test {
 protected:
  void make(std::vector<BytesPerSecond> capacities, ClassPolicy policy = ClassPolicy::none()) {
    network_.emplace(engine_, capacities, policy);
  }
  // Starts a flow; its name and time are noted at its end.
  Network::FlowId start(std::string name, const std::vector<LinkId>& route, std::uint64_t size,
                        TrafficClass traffic_class = TrafficClass::communication,
                        std::optional<BytesPerSecond> cap = std::nullopt) {
    return network_->start(
        {.route = route, .size = {size}, .traffic_class = traffic_class, .cap = cap},
        [this, name = std::move(name)] {
          ended_.push_back(name + "@" + std::to_string((engine_.now() - kStart) / 1us));
        });
  }
  std::uint64_t rate(Network::FlowId flow) { return network_->rate(flow).bytes().count; }
  void run(Duration duration) { engine_.run_until(engine_.now() + duration); }

  Engine engine_;
  std::optional<Network> network_;
  std::vector<std::string> ended_;
};

TEST_F(NetworkTest, AFlowTakesItsSizeByTheRateOfItsSlowestLink) {
  make({{5'000'000}, {1'000'000}, {3'000'000}});
  const auto flow = start("a", {0, 1, 2}, 250'000);
  EXPECT_EQ(rate(flow), 0U) << "the instant of its start is not over";
  run(0ns);
  EXPECT_EQ(rate(flow), 1'000'000U);
  run(100ms);
  EXPECT_EQ(network_->remaining(flow).count, 150'000U);
  EXPECT_TRUE(network_->is_running(flow));
  run(1s);
  EXPECT_THAT(ended_, ElementsAre("a@250000"));
  EXPECT_FALSE(network_->is_running(flow));
  EXPECT_EQ(network_->carried(1).count, 250'000U);
}

TEST_F(NetworkTest, WhatAFlowThatEndsLeavesOthersTake) {
  make({{1'000'000}});
  start("a", {0}, 100'000);
  start("b", {0}, 300'000);
  run(100ms);
  EXPECT_THAT(ended_, IsEmpty());
  start("c", {0}, 50'000);
  run(1s);
  // Halves until 100 ms: 50,000 of each. Thirds until 250 ms: all of a and c. Then b has 200,000.
  EXPECT_THAT(ended_, ElementsAre("a@250000", "c@250000", "b@450000"));
  EXPECT_EQ(network_->carried(0).count, 450'000U);
  EXPECT_EQ(network_->running(), 0U);
}

TEST_F(NetworkTest, AFlowEndsAtTheNanosecondInWhichItsLastByteHasPassed) {
  make({{3}});
  const auto flow = start("a", {0}, 1);
  run(333'333'333ns);
  EXPECT_TRUE(network_->is_running(flow));
  EXPECT_EQ(network_->remaining(flow).count, 1U);
  run(1ns);
  EXPECT_FALSE(network_->is_running(flow));
}

TEST_F(NetworkTest, ACapIsALinkOfItsOwn) {
  make({{1'000'000}});
  const auto capped = start("a", {0}, 50'000, kStorage, BytesPerSecond{100'000});
  const auto other = start("b", {0}, 450'000);
  const auto alone = start("c", {}, 10'000, kStorage, BytesPerSecond{40'000});
  run(0ns);
  EXPECT_EQ(rate(capped), 100'000U);
  EXPECT_EQ(rate(other), 900'000U);
  EXPECT_EQ(rate(alone), 40'000U);
  run(1s);
  EXPECT_THAT(ended_, ElementsAre("c@250000", "a@500000", "b@500000"));
  start("slow", {0}, 50'000, kStorage, BytesPerSecond{2'000'000});
  run(1s);
  EXPECT_THAT(ended_.back(), "slow@1050000") << "a cap above the link's capacity changes nothing";
}

TEST_F(NetworkTest, WithoutRouteOrBytesAFlowEndsInTheInstantOfItsStart) {
  make({{1'000}});
  run(5us);
  const auto local = start("local", {}, 1'000'000'000);
  const auto empty = start("empty", {0}, 0);
  EXPECT_TRUE(network_->is_running(local));
  EXPECT_EQ(network_->remaining(local).count, 0U);
  EXPECT_THAT(ended_, IsEmpty()) << "not within start()";
  run(0ns);
  EXPECT_THAT(ended_, ElementsAre("local@5", "empty@5"));
  EXPECT_FALSE(network_->is_running(empty));
}

TEST_F(NetworkTest, AFlowThatEndsMayStartOthersInItsPlace) {
  make({{1'000'000}});
  int left = 4;
  std::vector<Network::FlowId> flows;
  std::function<void()> next = [&] {
    ended_.push_back(std::to_string((engine_.now() - kStart) / 1us));
    if (--left == 0) return;
    flows.push_back(network_->start({.route = std::array{LinkId{0}}, .size = {1'000}}, next));
  };
  next();
  run(1s);
  EXPECT_THAT(ended_, ElementsAre("0", "1000", "2000", "3000"));
  ASSERT_EQ(flows.size(), 3U);
  for (const auto flow : flows) EXPECT_FALSE(network_->is_running(flow));
  EXPECT_NE(flows[0], flows[1]) << "though they had the same place";
}

TEST_F(NetworkTest, ChangesOfAnInstantTakeEffectTogether) {
  make({{1'000'000}});
  start("a", {0}, 100'000);
  run(50ms);
  // In one instant a second flow comes, and goes when it has nothing to do.
  engine_.at(
      engine_.now(), [this] { start("empty", {0}, 0); }, 3);
  const std::uint64_t before = network_->running();
  run(0ns);
  EXPECT_EQ(network_->running(), before);
  run(1s);
  EXPECT_THAT(ended_, ElementsAre("empty@50000", "a@100000"));
}

TEST_F(NetworkTest, ANetworkThatIsGoneLeavesNoEvents) {
  make({{1'000'000}});
  start("a", {0}, 100'000);
  run(1ms);
  start("b", {0}, 100'000);
  network_.reset();
  EXPECT_EQ(engine_.next(), kNever);
}

TEST_F(NetworkTest, WithPriorityStorageHasWhatCommunicationLeaves) {
  make({{1'000'000}, {600'000}}, ClassPolicy::priority());
  const auto storage = start("s", {0}, 1'000'000, kStorage);
  const auto slow = start("c", {0, 1}, 60'000);
  run(0ns);
  EXPECT_EQ(rate(slow), 600'000U);
  EXPECT_EQ(rate(storage), 400'000U);
  const auto fast = start("d", {0}, 40'000);
  run(0ns);
  EXPECT_EQ(rate(slow), 500'000U);
  EXPECT_EQ(rate(fast), 500'000U);
  EXPECT_EQ(rate(storage), 0U) << "it waits";
  run(10s);
  // Both at half until 80 ms, c at 600,000 until 113.3 ms; storage has 13,333 then.
  EXPECT_THAT(ended_, ElementsAre("d@80000", "c@113333", "s@1100000"));
}

TEST_F(NetworkTest, WithSharesAClassThatPressesHasItsPart) {
  make({{1'000'000}}, ClassPolicy::apportioned(3, 1));
  const auto communication = start("c", {0}, 1'000'000);
  std::vector<Network::FlowId> storage;
  for (int i = 0; i < 5; ++i) storage.push_back(start("s", {0}, 1'000'000, kStorage));
  run(0ns);
  EXPECT_EQ(rate(communication), 750'000U);
  for (const auto flow : storage) EXPECT_EQ(rate(flow), 50'000U);
}

TEST_F(NetworkTest, WithSharesWhatAClassLeavesTheOtherTakes) {
  make({{1'000'000}, {100'000}, {40'000}}, ClassPolicy::apportioned(1, 1));
  const auto communication = start("c", {0, 1}, 1'000'000);
  const auto one = start("s", {0}, 1'000'000, kStorage);
  const auto other = start("t", {0, 2}, 1'000'000, kStorage);
  run(0ns);
  EXPECT_EQ(rate(communication), 100'000U) << "all of link 1, where no storage presses";
  EXPECT_EQ(rate(other), 40'000U);
  EXPECT_EQ(rate(one), 860'000U);
  const auto more = start("d", {0}, 1'000'000);
  run(0ns);
  EXPECT_EQ(rate(communication), 100'000U);
  EXPECT_EQ(rate(more), 400'000U);
  EXPECT_EQ(rate(one), 460'000U);
}

// A class has its share of a link though its flows there are held up at first, as long as the other
// class seems to press on another link.
TEST_F(NetworkTest, WithSharesAClassIsNotHeldUpWhereTheOtherDoesNotPress) {
  make({{1'000'000}, {200'000}, {1'000}}, ClassPolicy::apportioned(1, 1));
  const auto communication = start("c", {0, 1}, 1'000'000);
  const auto storage = start("s", {0}, 1'000'000, kStorage);
  const auto trickle = start("t", {1, 2}, 1'000'000, kStorage);
  run(0ns);
  EXPECT_EQ(rate(trickle), 1'000U);
  EXPECT_EQ(rate(communication), 199'000U);
  EXPECT_EQ(rate(storage), 801'000U);
  EXPECT_EQ(network_->unsettled(), 0U);
}

TEST_F(NetworkTest, AlikeClassesAreSharedEquallyWithoutAPolicy) {
  make({{1'000'000}});
  const auto communication = start("c", {0}, 1'000'000);
  const auto storage = start("s", {0}, 1'000'000, kStorage);
  run(0ns);
  EXPECT_EQ(rate(communication), 500'000U);
  EXPECT_EQ(rate(storage), 500'000U);
}

TEST_F(NetworkTest, IncastIsBoundByTheReceiver) {
  constexpr NodeId kSenders = 24;
  const auto topology = made(make_single_switch(kSenders + 1, {24'000'000}));
  make(topology->capacities());
  for (NodeId sender = 1; sender <= kSenders; ++sender) {
    start("a", route_of(*topology, sender, 0), 500'000);
  }
  run(1s);
  EXPECT_EQ(ended_.size(), kSenders);
  EXPECT_THAT(ended_, Each("a@500000"));
  EXPECT_EQ(network_->carried(1).count, kSenders * 500'000U) << "to node 0";
}

TEST_F(NetworkTest, InAParkingLotTheLongFlowHasWhatEveryLinkLeaves) {
  // Link i has i + 1 short flows, and all have a long one: it has a fifth of the last link.
  constexpr std::size_t kLinks = 4;
  make(std::vector<BytesPerSecond>(kLinks, {60'000'000}));
  const auto long_flow = start("long", {0, 1, 2, 3}, 1'000'000'000);
  std::vector<std::vector<Network::FlowId>> short_flows(kLinks);
  for (LinkId link = 0; link < kLinks; ++link) {
    for (LinkId i = 0; i <= link; ++i) {
      short_flows[link].push_back(start("short", {link}, 1'000'000'000));
    }
  }
  run(0ns);
  EXPECT_EQ(rate(long_flow), 12'000'000U);
  for (LinkId link = 0; link < kLinks; ++link) {
    for (const auto flow : short_flows[link]) EXPECT_EQ(rate(flow), 48'000'000U / (link + 1));
  }
}

TEST_F(NetworkTest, TheBisectionOfATorusBoundsATransposition) {
  // Each node of a 4x4x4 torus sends half way round x. All go up, so each link up has the flows of
  // two nodes, and both halves of the torus send 32 flows over the 16 links up of each cut.
  const auto torus = made(make_torus({4, 4, 4}, {.node = {10'000'000}, .local = {10'000'000}}));
  make(torus->capacities());
  std::vector<Network::FlowId> flows;
  for (NodeId node = 0; node < 64; ++node) {
    flows.push_back(start("a", route_of(*torus, node, node ^ 2U), 1'000'000));
  }
  run(0ns);
  for (const auto flow : flows) EXPECT_EQ(rate(flow), 5'000'000U);
  run(1s);
  EXPECT_EQ(ended_.size(), 64U);
  EXPECT_THAT(ended_, Each("a@200000"));
}

TEST_F(NetworkTest, APermutationThatMeetsNoContentionHasTheFullRate) {
  const auto tree = made(make_fat_tree({4, 3}, {.node = {8'000'000}, .local = {8'000'000}}));
  make(tree->capacities());
  for (const NodeId shift : {1U, 16U, 21U}) {
    ended_.clear();
    const TimePoint begin = engine_.now();
    for (NodeId node = 0; node < 64; ++node) {
      start("a", route_of(*tree, node, (node + shift) % 64), 2'000'000);
    }
    run(250ms);
    EXPECT_THAT(ended_, Each("a@" + std::to_string((begin + 250ms - kStart) / 1us)));
    EXPECT_EQ(ended_.size(), 64U);
  }
}

TEST_F(NetworkTest, OneGlobalLinkBoundsTwoGroupsOfADragonfly) {
  // Without a third group all 8 nodes of one group share the link to the other.
  const auto dragonfly = made(make_dragonfly(
      {8, 1, 1}, {.node = {1'000'000}, .local = {1'000'000}, .global = {2'000'000}}));
  make(dragonfly->capacities());
  std::vector<Network::FlowId> flows;
  for (NodeId node = 0; node < 8; ++node) {
    flows.push_back(start("a", route_of(*dragonfly, node, node + 8), 1'000));
  }
  run(0ns);
  for (const auto flow : flows) EXPECT_EQ(rate(flow), 250'000U);
}

TEST_F(NetworkTest, ExtremeSizesAndRatesEndWhenTheyShould) {
  make({{LinkRates::kMost}, {1}});
  start("large", {0}, std::uint64_t{1} << 60);
  const auto never = start("never", {1}, ~std::uint64_t{0});
  run(2000s);
  EXPECT_THAT(ended_, ElementsAre("large@1024000000"));
  EXPECT_EQ(rate(never), 1U);
  EXPECT_EQ(network_->remaining(never).count, ~std::uint64_t{0} - 2000);
}

TEST_F(NetworkTest, WithEqualSharesNoFlowGetsWhatIsLeft) {
  make({{1'000'000}, {3'000'000}}, with_equal_shares(ClassPolicy::none()));
  const auto slow = start("slow", {0, 1}, 1'000'000);
  const auto fast = start("fast", {1}, 1'000'000);
  run(0ns);
  EXPECT_EQ(rate(slow), 1'000'000U);
  EXPECT_EQ(rate(fast), 1'500'000U);  // max-min fair: 2,000,000
  run(800ms);
  EXPECT_EQ(rate(slow), 1'000'000U);
  EXPECT_FALSE(network_->is_running(fast));
}

TEST_F(NetworkTest, WithEqualSharesPriorityCostsStorageNothing) {
  make({{6'000'000}}, with_equal_shares(ClassPolicy::priority()));
  const auto message = start("message", {0}, 1'000'000);
  const auto read = start("read", {0}, 1'000'000, kStorage);
  const auto write = start("write", {0}, 1'000'000, kStorage);
  run(0ns);
  EXPECT_EQ(rate(message), 6'000'000U);
  EXPECT_EQ(rate(read), 2'000'000U);
  EXPECT_EQ(rate(write), 2'000'000U);
}

TEST_F(NetworkTest, WithEqualSharesPartsOfClassesAreFixedWhereBothAre) {
  make({{8'000'000}, {1'000'000}}, with_equal_shares(ClassPolicy::apportioned(3, 1)));
  const auto message = start("message", {0, 1}, 1'000'000);
  const auto read = start("read", {0}, 1'000'000, kStorage);
  run(0ns);
  EXPECT_EQ(rate(message), 1'000'000U);
  EXPECT_EQ(rate(read), 2'000'000U);  // though the message leaves more
  run(500ms);
  EXPECT_FALSE(network_->is_running(read));
  EXPECT_EQ(rate(message), 1'000'000U);
}

TEST_F(NetworkTest, WithEqualSharesACapCounts) {
  make({{8'000'000}}, with_equal_shares(ClassPolicy::none()));
  const auto capped = start("a", {0}, 1'000'000, kStorage, BytesPerSecond{100'000});
  const auto alone = start("b", {}, 1'000'000, kStorage, BytesPerSecond{200'000});
  run(0ns);
  EXPECT_EQ(rate(capped), 100'000U);
  EXPECT_EQ(rate(alone), 200'000U);
}

TEST_F(NetworkTest, WithTheRulesOfTheStudyPriorityTakesStorageOffTheLink) {
  ClassPolicy policy = ClassPolicy::priority();
  policy.sharing = Sharing::study;
  make({{1'000'000}, {500'000}}, policy);
  const auto message = start("m", {0}, 1'000'000);
  const auto other = start("o", {0}, 1'000'000);
  const auto storage = start("s", {0, 1}, 250'000, kStorage);
  start("free", {0}, 250'000, kStorage);
  run(0ns);
  EXPECT_EQ(rate(message), 500'000U);
  EXPECT_EQ(rate(other), 500'000U);
  EXPECT_EQ(rate(storage), 500'000U) << "only the link without communication bounds it";
  run(1us);
  EXPECT_THAT(ended_, ElementsAre("free@0"));
}

TEST_F(NetworkTest, AFlowThatMayNotRiseKeepsItsLowestRate) {
  ClassPolicy policy;
  policy.sharing = Sharing::study;
  make({{1'000'000}}, policy);
  const auto flow = network_->start(
      {.route = std::vector<LinkId>{0}, .size = {1'000'000}, .may_rise = false}, [] {});
  run(0ns);
  EXPECT_EQ(rate(flow), 1'000'000U);
  start("other", {0}, 100'000);
  run(0ns);
  EXPECT_EQ(rate(flow), 500'000U);
  run(500ms);
  EXPECT_THAT(ended_, ElementsAre("other@200000"));
  EXPECT_EQ(rate(flow), 500'000U);
}

}  // namespace
}  // namespace vpfs::sim
