#include "sim/placement/application.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sim/network/topologies.h"

namespace vpfs::sim {
namespace {

using namespace std::chrono_literals;

constexpr Bytes kGigabyte = {1'000'000'000};

// Four nodes at one switch, 10 GB/s each way.
class MarkovApplicationTest : public testing::Test {
 protected:
  MarkovApplicationTest()
      : topology_(make_single_switch(4, {10'000'000'000}).value()), storage_(*topology_, {}) {
    settings_.profile = {.lockstep = true,
                         .tasks = 1,
                         .io_tasks = 1,
                         .steps = 1,
                         .compute = 0,
                         .read = 0,
                         .write = 0,
                         .io_bytes = kGigabyte,
                         .data_bytes = kGigabyte,
                         .message_bytes = kGigabyte};
    use_nodes(1);
  }
  // One task on each; each has its own device.
  void use_nodes(std::uint32_t count) {
    settings_.profile.tasks = settings_.profile.io_tasks = count;
    settings_.nodes.clear();
    for (NodeId node = 0; node < count; ++node) settings_.nodes.push_back(node);
    settings_.data.devices = settings_.nodes;
  }
  void use_central(std::uint32_t servers) {
    settings_.data.devices.clear();
    settings_.data.servers = servers;
  }
  Duration run() {
    Engine engine;
    Network network(engine, storage_.capacities(), policy_);
    std::optional<TimePoint> end;
    MarkovApplication application({engine, network, *topology_, storage_}, settings_,
                                  [&] { end = engine.now(); });
    application.start();
    while (engine.step()) {
    }
    EXPECT_TRUE(end.has_value());
    EXPECT_EQ(network.running(), 0U);
    // Of background transfers, too.
    idle_ = engine.now() - TimePoint();
    return end.value_or(TimePoint()) - TimePoint();
  }

  std::unique_ptr<const Topology> topology_;
  Storage storage_;
  ClassPolicy policy_;
  MarkovApplication::Settings settings_;
  Duration idle_ = {};
};

TEST_F(MarkovApplicationTest, ComputingTakesItsTime) {
  settings_.profile.compute = 1000;
  settings_.profile.steps = 7;
  settings_.profile.compute_time = 50ms;
  EXPECT_EQ(run(), 350ms);
}

TEST_F(MarkovApplicationTest, ALocalReadIsAsFastAsTheDevice) {
  settings_.profile.read = 1000;
  EXPECT_EQ(run(), 500ms);
  settings_.profile.memory_percent = 100;
  EXPECT_EQ(run(), 100ms);
}

TEST_F(MarkovApplicationTest, ALocalWriteIsAsFastAsTheDevice) {
  settings_.profile.write = 1000;
  settings_.profile.steps = 3;
  EXPECT_EQ(run(), 3s);
}

TEST_F(MarkovApplicationTest, ManyTasksOnOneDeviceShareIt) {
  use_nodes(4);
  settings_.data.devices = {2};
  settings_.profile.read = 1000;
  EXPECT_EQ(run(), 2s);
}

TEST_F(MarkovApplicationTest, RemoteAccessIsBoundByTheLink) {
  topology_ = make_single_switch(2, {500'000'000}).value();
  Storage storage(*topology_, {});
  Engine engine;
  Network network(engine, storage.capacities(), policy_);
  use_nodes(2);
  settings_.profile.read = 1000;
  settings_.profile.remote_percent = 100;
  TimePoint end;
  MarkovApplication application({engine, network, *topology_, storage}, settings_,
                                [&] { end = engine.now(); });
  application.start();
  while (engine.step()) {
  }
  EXPECT_EQ(end - TimePoint(), 2s);
}

TEST_F(MarkovApplicationTest, TasksWithoutIoPassOverIt) {
  use_nodes(2);
  settings_.profile.io_tasks = 1;
  settings_.data.devices = {0};
  settings_.profile.read = 1000;
  EXPECT_EQ(run(), 500ms);
}

TEST_F(MarkovApplicationTest, AMessageTakesItsTimeOnTheWay) {
  use_nodes(4);
  settings_.profile.pattern = Pattern::ring;
  EXPECT_EQ(run(), 100ms);
  settings_.profile.pattern = Pattern::all_to_all;
  settings_.profile.message_bytes = {900'000'000};  // of which each other task gets a third
  EXPECT_EQ(run(), 90ms + 1ns);                     // rates are rounded down
  settings_.profile.pattern = Pattern::neighbours;
  settings_.profile.steps = 5;
  EXPECT_EQ(run(), 450ms);
}

TEST_F(MarkovApplicationTest, ATaskWaitsForThoseItHearsFrom) {
  // The first task reads first, so its message is late, and so is whoever waits for it.
  use_nodes(2);
  settings_.profile.io_tasks = 1;
  settings_.profile.pattern = Pattern::ring;
  settings_.profile.steps = 40;
  settings_.profile.read = 500;
  Random random(settings_.seed);
  const std::vector<Step> steps = draw_steps(settings_.profile, random);
  const auto reads = std::ranges::count(steps, Step::read);
  ASSERT_GT(reads, 0);
  ASSERT_LT(reads, 40);
  EXPECT_EQ(run(), reads * 500ms + (40 - reads) * 100ms);
}

TEST_F(MarkovApplicationTest, WithoutLockstepATaskWaitsForNobody) {
  use_nodes(4);
  settings_.profile.lockstep = false;
  settings_.profile.pattern = Pattern::ring;
  settings_.profile.steps = 40;
  settings_.profile.read = 500;
  // Reads take 500 ms, messages 100 ms, and nobody is in the way of another.
  Duration longest = {};
  for (std::uint32_t task = 0; task < 4; ++task) {
    Random random(settings_.seed, task + 1);
    const std::vector<Step> steps = draw_steps(settings_.profile, random);
    const auto reads = std::ranges::count(steps, Step::read);
    longest = std::max<Duration>(longest, reads * 500ms + (40 - reads) * 100ms);
  }
  EXPECT_EQ(run(), longest);
}

TEST_F(MarkovApplicationTest, CentralServersAreBoundByTheirCables) {
  use_central(1);
  settings_.profile.read = 1000;
  EXPECT_EQ(run(), 800ms);  // 1.25 GB/s
  use_nodes(4);
  use_central(1);
  EXPECT_EQ(run(), 3200ms);
  use_central(4);
  EXPECT_EQ(run(), 800ms);
}

TEST_F(MarkovApplicationTest, NobodyWaitsForReplicas) {
  use_central(2);
  settings_.profile.write = 1000;
  EXPECT_EQ(run(), 1s);
  EXPECT_EQ(idle_, 1s);  // the other server's device is as fast
}

TEST_F(MarkovApplicationTest, DataAreStagedInAndOut) {
  settings_.is_staged = true;
  settings_.profile.read = 1000;
  // In and out at 1 GB/s, which is what the device writes, and the central server's.
  EXPECT_EQ(run(), 1s + 500ms + 1s);
  settings_.profile.io_tasks = 0;
  EXPECT_EQ(run(), 0s);
}

TEST_F(MarkovApplicationTest, TheSameSeedGivesTheSameTime) {
  use_nodes(4);
  settings_.profile.read = settings_.profile.write = 375;
  settings_.profile.compute = 125;
  settings_.profile.steps = 40;
  settings_.profile.remote_percent = 50;
  settings_.profile.memory_percent = 30;
  const Duration first = run();
  EXPECT_EQ(run(), first);
  settings_.seed = 2;
  EXPECT_NE(run(), first);
}

}  // namespace
}  // namespace vpfs::sim
