#include "sim/cluster/placement/application.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sim/cluster/network/topologies.h"

namespace vpfs::sim {
namespace {

using namespace std::chrono_literals;

constexpr Bytes kGigabyte = {1'000'000'000};

// Four nodes at one switch, 10 GB/s each way.
class MarkovApplicationTest : public testing::Test {
 protected:
  MarkovApplicationTest()
      : topology_(make_single_switch(4, {10'000'000'000}).value()),
        storage_(std::in_place, *topology_, StorageRates{}) {
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
    Network network(engine, storage_->capacities(), policy_);
    std::optional<TimePoint> end;
    MarkovApplication application({engine, network, *topology_, *storage_}, settings_,
                                  [&] { end = engine.now(); });
    application.start();
    while (engine.step()) {
    }
    EXPECT_TRUE(end.has_value());
    EXPECT_EQ(network.running(), 0U);
    // The end of background transfers, too.
    idle_ = engine.now() - TimePoint();
    return end.value_or(TimePoint()) - TimePoint();
  }

  std::unique_ptr<const Topology> topology_;
  std::optional<Storage> storage_;
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
  settings_.data.access = Access::affinity;
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
  for (const Pattern pattern : {Pattern::ring, Pattern::all_to_all, Pattern::neighbours}) {
    settings_.profile.pattern = pattern;
    settings_.profile.message_bytes = {900'000'000};
    EXPECT_EQ(run(), 90ms);
  }
  settings_.profile.steps = 5;
  EXPECT_EQ(run(), 450ms);
}

TEST_F(MarkovApplicationTest, AHopWaitsForTheOneBefore) {
  // All send over one link, 1 GB/s, a third of 900 MB to the next one.
  topology_ = make_single_switch(4, {1'000'000'000}).value();
  storage_.emplace(*topology_, StorageRates{});
  use_nodes(4);
  settings_.profile.message_bytes = {900'000'000};
  settings_.profile.pattern = Pattern::ring;
  EXPECT_EQ(run(), 900ms);
  // A read of a task delays what it hears and says in the next communication, and so all of them.
  settings_.profile.messages = 3;
  EXPECT_EQ(run(), 900ms);
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

// Two tasks. How long all takes if the n-th communication of one is that of the other, a read takes
// 500 ms, and messages 100 ms. The rest of the one that communicates more often is its own.
Duration expected_of_two(const Profile& profile, std::uint64_t seed) {
  std::vector<std::vector<Duration>> reads(2);  // before each communication, and behind the last
  for (std::uint32_t task = 0; task < 2; ++task) {
    Random random(seed, task + 1);
    reads[task].emplace_back(0);
    for (const Step step : draw_steps(profile, random)) {
      if (step == Step::read) {
        reads[task].back() += 500ms;
      } else {
        reads[task].emplace_back(0);
      }
    }
  }
  const std::size_t together = std::min(reads[0].size(), reads[1].size()) - 1;
  Duration both = {};
  for (std::size_t i = 0; i < together; ++i) both += std::max(reads[0][i], reads[1][i]) + 100ms;
  Duration longest = {};
  for (const std::vector<Duration>& each : reads) {
    Duration rest = {};
    for (std::size_t i = together; i < each.size(); ++i)
      rest += each[i];  // alone: no task to send to
    longest = std::max(longest, rest);
  }
  return both + longest;
}

TEST_F(MarkovApplicationTest, CommunicationsOfOwnSequencesAreMatched) {
  use_nodes(2);
  settings_.profile.lockstep = false;
  settings_.profile.pattern = Pattern::ring;
  settings_.profile.steps = 40;
  settings_.profile.read = 500;
  for (settings_.seed = 1; settings_.seed < 10; ++settings_.seed) {
    EXPECT_EQ(run(), expected_of_two(settings_.profile, settings_.seed));
  }
}

TEST_F(MarkovApplicationTest, ATaskWithoutIoDoesNotRaceAhead) {
  // In each communication it waits for the other, which reads.
  use_nodes(2);
  settings_.profile.io_tasks = 1;
  settings_.profile.pattern = Pattern::permutation;
  settings_.profile.steps = 60;
  settings_.profile.read = 500;
  settings_.profile.messages = 4;
  Random random(settings_.seed);
  const std::vector<Step> steps = draw_steps(settings_.profile, random);
  const auto reads = std::ranges::count(steps, Step::read);
  // Half of the permutations of two exchange them; in others no task sends.
  const Duration took = run();
  EXPECT_GT(took, reads * 500ms + 1s);
  EXPECT_LT(took, reads * 500ms + (60 - reads) * 100ms);
}

TEST_F(MarkovApplicationTest, AccessesMoveAPartOfTheData) {
  settings_.profile.read = 1000;
  settings_.profile.steps = 100;
  settings_.profile.least_io_percent = 1;
  const Duration took = run();
  EXPECT_GT(took, 100 * 500ms * 4 / 10);
  EXPECT_LT(took, 100 * 500ms * 6 / 10);
  EXPECT_EQ(took % 5ms, 0ms);
  // Tasks in lockstep all have the same to do.
  use_nodes(4);
  EXPECT_EQ(run(), took);
}

TEST_F(MarkovApplicationTest, CentralServersAreBoundByTheirCables) {
  storage_.emplace(*topology_, StorageRates{.replicas = 0});
  use_central(1);
  settings_.profile.read = 1000;
  EXPECT_EQ(run(), 800ms);  // 1.25 GB/s
  use_nodes(4);
  use_central(1);
  EXPECT_EQ(run(), 3200ms);
}

TEST_F(MarkovApplicationTest, AReadComesFromAllThatHaveACopy) {
  use_central(4);
  settings_.profile.read = 1000;
  EXPECT_EQ(run(), 400ms);
  storage_.emplace(*topology_, StorageRates{.replicas = 3});
  EXPECT_EQ(run(), 200ms);
  storage_.emplace(*topology_, StorageRates{.replicas = 0});
  EXPECT_EQ(run(), 800ms);
}

TEST_F(MarkovApplicationTest, NoTaskWaitsForReplicas) {
  use_central(2);
  settings_.profile.write = 1000;
  storage_.emplace(*topology_, StorageRates{.back_end = {1'000'000'000}});
  EXPECT_EQ(run(), 800ms);
  EXPECT_EQ(idle_, 1s);
}

TEST_F(MarkovApplicationTest, DataAreStagedInAndOut) {
  settings_.is_staged = true;
  settings_.profile.read = 500;
  settings_.profile.write = 500;
  settings_.profile.steps = 20;
  const std::int64_t reads = [&] {
    Random random(settings_.seed);
    return std::ranges::count(draw_steps(settings_.profile, random), Step::read);
  }();
  // In at the device's 1 GB/s. No task waits until the output is out, at the cable's 1.25 GB/s.
  const Duration steps = reads * 500ms + (20 - reads) * 1s;
  EXPECT_EQ(run(), 1s + steps);
  EXPECT_EQ(idle_, 1s + steps + 800ms);
  settings_.profile.io_tasks = 0;
  EXPECT_EQ(run(), 0s);
}

TEST_F(MarkovApplicationTest, WhatIsNotWrittenIsNotStagedOut) {
  settings_.is_staged = true;
  settings_.profile.read = 1000;
  EXPECT_EQ(run(), 1s + 500ms);
  EXPECT_EQ(idle_, 1s + 500ms);
  settings_.profile.data_bytes = {4 * kGigabyte.count};  // of which it reads a quarter
  EXPECT_EQ(run(), 1s + 500ms);
  settings_.profile.read = 0;
  settings_.profile.write = 1000;
  EXPECT_EQ(run(), 1s);
  EXPECT_EQ(idle_, 1s + 800ms);
}

TEST_F(MarkovApplicationTest, ApplicationsAreStagedFromOtherServers) {
  // Each of 200 applications of one task moves a gigabyte.
  settings_.is_staged = true;
  settings_.profile.read = 1000;
  storage_.emplace(*topology_, StorageRates{.servers = 4});
  Engine engine;
  Network network(engine, storage_->capacities(), policy_);
  std::vector<std::unique_ptr<MarkovApplication>> applications;
  for (settings_.seed = 1; settings_.seed <= 200; ++settings_.seed) {
    applications.push_back(std::make_unique<MarkovApplication>(
        MarkovApplication::Machine{engine, network, *topology_, *storage_}, settings_, [] {}));
    applications.back()->start();
  }
  while (engine.step()) {
  }
  for (std::uint32_t server = 0; server < 4; ++server) {
    std::vector<LinkId> route;
    storage_->fetch(server, false, route);
    EXPECT_NEAR(static_cast<double>(network.carried(route[0]).count) / 1e9, 50, 20);
  }
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
