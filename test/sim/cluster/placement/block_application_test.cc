#include "sim/cluster/placement/block_application.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "sim/cluster/network/topologies.h"

namespace vpfs::sim {
namespace {

using namespace std::chrono_literals;

constexpr BlockWeights kEndAtOnce = {0, 0, 0, 0, 1};

// Four nodes at one switch, 10 GB/s each way, and one central server. All is input and output
// unless a test says more.
class BlockApplicationTest : public testing::Test {
 protected:
  BlockApplicationTest() {
    settings_.profile.data = {1'000'000'000};
    settings_.profile.next = {kEndAtOnce, kEndAtOnce, kEndAtOnce, kEndAtOnce};
    settings_.tally = &tally_;
    use_nodes(1);
  }
  void use_nodes(std::uint32_t count) {
    settings_.profile.tasks = settings_.profile.readers = settings_.profile.writers = count;
    settings_.nodes.clear();
    for (NodeId node = 0; node < count; ++node) settings_.nodes.push_back(node);
    settings_.data.devices = settings_.nodes;
  }
  void use_central() {
    settings_.data.devices.clear();
    settings_.data.servers = 1;
  }
  // Some hundred blocks of all kinds.
  void use_all_blocks() { settings_.profile.next = BlockProfile().next; }
  Duration run(ClassPolicy policy = {}) {
    const auto topology = make_single_switch(4, {link_rate_}).value();
    const Storage storage(*topology, {.servers = 1});
    Engine engine;
    Network network(engine, storage.capacities(), policy);
    tally_ = {};
    std::optional<TimePoint> end;
    BlockApplication application({engine, network, *topology, storage}, settings_,
                                 [&] { end = engine.now(); });
    application.start();
    while (engine.step()) {
    }
    EXPECT_TRUE(end.has_value());
    EXPECT_EQ(network.running(), 0U);
    return end.value_or(TimePoint()) - TimePoint();
  }

  std::uint64_t link_rate_ = 10'000'000'000;
  BlockApplication::Settings settings_;
  Tally tally_;
};

TEST_F(BlockApplicationTest, AllDataComeInAreReadAndWrittenAndGoOut) {
  // The device takes 1 s in, 0.5 s for the input, 1 s for the output; out it is bound by 1 GB/s.
  EXPECT_EQ(run(), 3500ms);
  EXPECT_EQ(tally_.staged.count, 2'000'000'000U);
  EXPECT_EQ(tally_.local.count, 2'000'000'000U);
}

TEST_F(BlockApplicationTest, WithFreeNodesTheServerAloneBoundsStaging) {
  settings_.rules.has_free_nodes = true;
  EXPECT_EQ(run(), 3300ms);
}

TEST_F(BlockApplicationTest, MemoryAnswersNoInputAndNoOutput) {
  settings_.profile.memory_percent = 100;
  EXPECT_EQ(run(), 3500ms);
}

TEST_F(BlockApplicationTest, CentralDataAreNotStaged) {
  use_central();
  EXPECT_EQ(run(), 1800ms);
  EXPECT_EQ(tally_.staged.count, 0U);
  EXPECT_EQ(tally_.central.count, 2'000'000'000U);
}

TEST_F(BlockApplicationTest, CentralTrafficDoesNotUseTheInterconnect) {
  use_nodes(4);
  use_central();
  const Duration time = run();
  link_rate_ = 1'000'000;
  EXPECT_EQ(run(), time);
}

TEST_F(BlockApplicationTest, IoTasksPassOnAndGatherOverTheInterconnect) {
  use_nodes(4);
  use_central();
  settings_.profile.readers = settings_.profile.writers = 1;
  // 0.8 s from the server; 750 MB out of one node, and into it again; 1 s to the server.
  // Each of the flows there ends at a whole nanosecond.
  const auto nanoseconds = [](Duration time) { return static_cast<double>(time.count()); };
  EXPECT_NEAR(nanoseconds(run()), nanoseconds(800ms + 75ms + 75ms + 1s), 8);
  link_rate_ = 1'000'000'000;
  EXPECT_NEAR(nanoseconds(run()), nanoseconds(800ms + 750ms + 750ms + 1s), 8);
}

TEST_F(BlockApplicationTest, EachTaskComputesItsOwnTime) {
  use_nodes(4);
  settings_.profile.next = {kEndAtOnce, kEndAtOnce, BlockWeights{1, 0, 0, 0, 0}, kEndAtOnce};
  const Duration without = [&] {
    settings_.profile.compute_mean = 0ns;
    return run();
  }();
  settings_.profile.compute_mean = 100ms;
  const Duration with = run();
  EXPECT_GT(with, without);
  const Duration all = tally_.time(Step::compute);
  EXPECT_LT(all, 4 * (with - without)) << "the slowest one computes longer than the mean";
}

TEST_F(BlockApplicationTest, TraceOrderNeverHelpsAndOftenCosts) {
  use_nodes(4);
  use_all_blocks();
  settings_.data.devices = {0, 2};
  settings_.profile.remote_percent = 100;
  int slower = 0;
  for (settings_.seed = 1; settings_.seed <= 10; ++settings_.seed) {
    settings_.rules.has_trace_order = false;
    const Duration own = run();
    settings_.rules.has_trace_order = true;
    const Duration trace = run();
    EXPECT_GE(trace, own * 97 / 100);
    if (trace > own) ++slower;
  }
  EXPECT_GE(slower, 6);
}

TEST_F(BlockApplicationTest, LocalityDecidesWhatFewDevicesGive) {
  use_nodes(4);
  use_all_blocks();
  settings_.data.devices = {0, 2};
  const auto local_part = [&](Locality locality) {
    settings_.rules.locality = locality;
    (void)run();
    const auto all = static_cast<double>(tally_.local.count + tally_.remote.count);
    return static_cast<double>(tally_.local.count) / all;
  };
  EXPECT_NEAR(local_part(Locality::by_node), 0.5, 0.001);
  EXPECT_NEAR(local_part(Locality::by_share), 0.5, 0.1);
  EXPECT_EQ(local_part(Locality::whole), 0);
  settings_.data.devices = settings_.nodes;
  EXPECT_EQ(local_part(Locality::whole), 1);
}

TEST_F(BlockApplicationTest, AFixedDeviceIsOnesOwnIfThereAreEnough) {
  use_nodes(4);
  use_all_blocks();
  settings_.data.access = Access::affinity;
  settings_.profile.remote_percent = 100;
  link_rate_ = 1'000'000'000'000;
  const Duration remote = run();
  EXPECT_EQ(tally_.local.count, 0U) << "counted as remote, though it is the own node";
  settings_.profile.remote_percent = 0;
  EXPECT_EQ(run(), remote);
}

TEST_F(BlockApplicationTest, RatesThatNeverRiseCost) {
  use_nodes(4);
  use_all_blocks();
  settings_.profile.remote_percent = settings_.profile.memory_percent = 100;
  link_rate_ = 500'000'000;
  ClassPolicy policy;
  policy.sharing = Sharing::study;
  const Duration rising = run(policy);
  settings_.rules.messages_may_rise = settings_.rules.hits_may_rise = false;
  EXPECT_GT(run(policy), rising);
}

TEST_F(BlockApplicationTest, TheSameSeedGivesTheSameTimeInAllModes) {
  use_nodes(4);
  use_all_blocks();
  settings_.profile.remote_percent = settings_.profile.memory_percent = 50;
  for (const bool is_study : {false, true}) {
    settings_.rules.has_trace_order = settings_.rules.has_free_nodes = is_study;
    ClassPolicy policy;
    policy.sharing = is_study ? Sharing::study : Sharing::max_min;
    settings_.seed = 1;
    const Duration first = run(policy);
    EXPECT_EQ(run(policy), first);
    settings_.seed = 2;
    EXPECT_NE(run(policy), first);
  }
}

}  // namespace
}  // namespace vpfs::sim
