#include "sim/cluster/scenario.h"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/places.h"

namespace vpfs::sim {
namespace {

using namespace std::chrono_literals;

// A mistake in what follows is on line 3 or later.
const std::string kNetwork =
    "cluster:\n"
    "  network: {topology: switch, nodes: 4, link_rate: 1 GB/s}\n";
const std::string kApplications =
    "applications:\n"
    "  - {name: a, tasks: 4, steps: 1, per_mille: {compute: 1000}}\n";

std::string problems_of_cluster(const std::string& text) {
  ConfigErrors errors("c.yaml");
  (void)read_cluster_scenario(text, errors);
  return errors.to_string();
}
// The problems of a cluster with these keys beside its network, on line 3.
std::string problems_of(const std::string& section) {
  return problems_of_cluster(kNetwork + "  " + section + "\n" + kApplications);
}
// The problems of an application with these keys beside its name, on line 4.
std::string problems_of_application(const std::string& keys) {
  return problems_of_cluster(kNetwork + "applications:\n  - {name: a, " + keys + "}\n");
}
ClusterScenario example(const std::string& file) {
  std::ifstream in(test::source("conf/sim/" + file));
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_TRUE(is_cluster_scenario(text));
  ConfigErrors errors(file);
  ClusterScenario scenario = read_cluster_scenario(text, errors);
  EXPECT_EQ(errors.to_string(), "");
  return scenario;
}

TEST(ClusterScenario, TheExampleOfDataIsGood) {
  const ClusterScenario scenario = example("data-placement.yaml");
  ASSERT_NE(scenario.network.topology, nullptr);
  EXPECT_EQ(scenario.network.topology->nodes(), 72U);
  EXPECT_EQ(scenario.network.description, "dragonfly (2,4,2)");
  EXPECT_EQ(scenario.batch.data, Batch::Data::internal);
  EXPECT_TRUE(scenario.batch.backfills);
  EXPECT_TRUE(scenario.batch.is_staged);
  EXPECT_EQ(scenario.storage.servers, 8U);
  EXPECT_EQ(scenario.storage.write, BytesPerSecond{1'000'000'000});
  ASSERT_EQ(scenario.applications.size(), 2U);
  EXPECT_EQ(scenario.applications[0].name_of(3), "analysis 4");
  EXPECT_TRUE(scenario.applications[0].at_random);
  EXPECT_EQ(scenario.applications[0].least.memory_percent, 25U);
  EXPECT_EQ(scenario.applications[1].name_of(0), "simulation");
  EXPECT_EQ(scenario.applications[1].least.pattern, Pattern::neighbours);
  EXPECT_EQ(scenario.applications[1].least.io_tasks, 8U);
}

TEST(ClusterScenario, TheExampleOfGivenLinksIsGood) {
  const ClusterScenario scenario = example("network-priority.yaml");
  ASSERT_NE(scenario.network.topology, nullptr);
  EXPECT_EQ(scenario.network.topology->nodes(), 6U);
  EXPECT_EQ(scenario.network.topology->links().size(), 14U);
  EXPECT_EQ(scenario.network.name_of(6), "rack-a");
  EXPECT_EQ(scenario.network.policy.kind, ClassPolicy::Kind::apportioned);
  EXPECT_EQ(scenario.network.policy.communication, 90U);
  EXPECT_EQ(scenario.batch.devices, (std::vector<NodeId>{4, 5}));
}

TEST(ClusterScenario, ItIsKnownByItsKeyWhateverIsWrong) {
  EXPECT_TRUE(is_cluster_scenario("cluster: 5\n"));
  EXPECT_FALSE(is_cluster_scenario("servers: {count: 1}\n"));
  EXPECT_FALSE(is_cluster_scenario("cluster: [\n"));
}

TEST(ClusterScenario, ALittleIsEnough) {
  EXPECT_EQ(problems_of_cluster(kNetwork + kApplications), "");
  EXPECT_EQ(problems_of_cluster("cluster: {}\n"),
            "c.yaml:1: cluster.network: is missing\nc.yaml:1: applications: is missing\n");
}

TEST(ClusterScenario, MistakesOfStorageAreNamedWithLineAndKey) {
  EXPECT_EQ(problems_of("storage: {plaze: cache}"),
            "c.yaml:3: cluster.storage.plaze: unknown key; did you mean \"place\"?\n");
  EXPECT_EQ(problems_of("storage: {devices: 2}"),
            "c.yaml:3: cluster.storage.devices: is for place: shared\n");
  EXPECT_EQ(problems_of("storage: {place: shared}"),
            "c.yaml:3: cluster.storage.devices: is missing\n");
  EXPECT_EQ(problems_of("storage: {place: shared, devices: 5}"),
            "c.yaml:3: cluster.storage.devices: \"5\" is out of range: 1 to 4\n");
  EXPECT_EQ(problems_of("storage: {place: shared, devices: [0, 4]}"),
            "c.yaml:3: cluster.storage.devices: there is no node '4'\n");
  EXPECT_EQ(problems_of("storage: {place: shared, devices: [1, 1]}"),
            "c.yaml:3: cluster.storage.devices: '1' is listed twice\n");
  EXPECT_EQ(problems_of("storage: {place: cache, access: affinity}"),
            "c.yaml:3: cluster.storage.access: is always local with place: cache\n");
  EXPECT_EQ(problems_of("storage: {place: central}"), "c.yaml:1: cluster.san: is missing\n");
  EXPECT_EQ(problems_of("storage: {staged: true}"), "c.yaml:1: cluster.san: is missing\n");
  EXPECT_NE(problems_of("storage: {read: 1 KiB/s}"), "");
  EXPECT_NE(problems_of("storage: {memory_percent: 101}"), "");
  EXPECT_EQ(problems_of("san: {front_end: 1 GB/s}"), "c.yaml:3: cluster.san.servers: is missing\n");
}

TEST(ClusterScenario, CentralServersHaveRatesAndReplicasOfTheirOwn) {
  ConfigErrors errors("c.yaml");
  const ClusterScenario scenario = read_cluster_scenario(
      kNetwork + "  san: {servers: 3, replicas: 2, read: 3 GB/s, write: 4 GB/s}\n" + kApplications,
      errors);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_EQ(scenario.storage.replicas, 2U);
  EXPECT_EQ(scenario.storage.server_read, BytesPerSecond{3'000'000'000});
  EXPECT_EQ(scenario.storage.server_write, BytesPerSecond{4'000'000'000});
  EXPECT_EQ(scenario.storage.write, BytesPerSecond{1'000'000'000});
}

TEST(ClusterScenario, DevicesAreSpreadOverAllNodes) {
  ConfigErrors errors("c.yaml");
  const ClusterScenario scenario = read_cluster_scenario(
      kNetwork + "  storage: {place: shared, devices: 2}\n" + kApplications, errors);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_EQ(scenario.batch.devices, (std::vector<NodeId>{0, 2}));
}

TEST(ClusterScenario, MistakesOfApplicationsAreNamedWithLineAndKey) {
  const std::string good = "steps: 1, per_mille: {compute: 1000}, ";
  EXPECT_EQ(problems_of_application(good + "tasks: 5"),
            "c.yaml:4: applications[0].tasks: is 5, but the cluster has 4 nodes\n");
  EXPECT_EQ(problems_of_application(good + "tasks: 2, io_tasks: 3"),
            "c.yaml:4: applications[0].io_tasks: \"3\" is out of range: 0 to 2\n");
  EXPECT_NE(problems_of_application(good + "tasks: 2, io_size: -1"), "");
  EXPECT_EQ(problems_of_application("steps: 1, tasks: 1, per_mille: {read: 900}"),
            "c.yaml:4: applications[0].per_mille: adds up to 900, not to 1000\n");
  EXPECT_EQ(problems_of_application("steps: 1, tasks: 1, per_mille: {communicate: 1000}"),
            "c.yaml:4: applications[0].per_mille.communicate: a single task has no other task to "
            "send to\n");
  EXPECT_EQ(problems_of_application("tasks: 1"),
            "c.yaml:4: applications[0].steps: is missing\n"
            "c.yaml:4: applications[0].per_mille: is missing\n");
  EXPECT_EQ(problems_of_application(good + "tasks: 1, every: 1 s"),
            "c.yaml:4: applications[0].every: is for more than one application\n");
  EXPECT_EQ(problems_of_application(good + "tasks: 1, count: 100000, every: 2 h"),
            "c.yaml:4: applications[0].every: \"2 h\" is out of range: 0 s to 1 h\n");
  EXPECT_EQ(problems_of_application(good + "tasks: 1, pattern: star"),
            "c.yaml:4: applications[0].pattern: \"star\" is not one of: permutation, neighbours, "
            "all_to_all, ring\n");
  EXPECT_EQ(problems_of_application(good + "tasks: 1}\n  - {name: a, tasks: 1, " + good),
            "c.yaml:5: applications[1].name: 'a' is listed twice\n");
  EXPECT_EQ(problems_of_cluster(kNetwork + "applications: []\n"),
            "c.yaml:3: applications: must name at least one\n");
}

TEST(ClusterScenario, NumbersMayBeDrawnBetweenTwo) {
  const std::string rest = "per_mille: {compute: 1000}, ";
  EXPECT_EQ(problems_of_application(rest + "steps: 1, tasks: {least: 2, most: 5}"),
            "c.yaml:4: applications[0].tasks: is 5, but the cluster has 4 nodes\n");
  EXPECT_EQ(problems_of_application(rest + "steps: {least: 5, most: 4}, tasks: 1"),
            "c.yaml:4: applications[0].steps.most: \"4\" is out of range: 5 to 100000\n");
  EXPECT_EQ(problems_of_application(rest + "steps: 1, tasks: 1, io_size: {least: 1 MiB}"),
            "c.yaml:4: applications[0].io_size.most: is missing\n");
  ConfigErrors errors("c.yaml");
  const ClusterScenario scenario = read_cluster_scenario(
      kNetwork + "applications:\n  - {name: a, tasks: {least: 2, most: 3}, steps: 7, " + rest +
          "io_size: {least: 10, most: 20}}\n",
      errors);
  EXPECT_EQ(errors.to_string(), "");
  Random random(1);
  bool has_two = false;
  bool has_three = false;
  for (int i = 0; i < 100; ++i) {
    const Profile profile = scenario.applications.at(0).draw(random);
    (profile.tasks == 2 ? has_two : has_three) = true;
    EXPECT_TRUE(profile.tasks == 2 || profile.tasks == 3);
    EXPECT_EQ(profile.io_tasks, profile.tasks);
    EXPECT_EQ(profile.steps, 7U);
    EXPECT_GE(profile.io_bytes.count, 10U);
    EXPECT_LE(profile.io_bytes.count, 20U);
  }
  EXPECT_TRUE(has_two && has_three);
}

TEST(ClusterScenario, BackfillingNeedsWallTimes) {
  EXPECT_EQ(problems_of("batch: {queue: backfill}"),
            "c.yaml:5: applications[0].wall_time: is missing\n");
}

TEST(ClusterScenario, KeysThatWouldNotCountAreMistakes) {
  EXPECT_EQ(problems_of_application("steps: 1, tasks: 1, per_mille: {read: 1000}, wall_time: 1 s"),
            "c.yaml:4: applications[0].wall_time: is for queue: backfill\n");
  EXPECT_EQ(problems_of("storage: {place: cache, remote_percent: 10}"),
            "c.yaml:3: cluster.storage.remote_percent: is not for place: cache or central\n");
  const std::string san = "  san: {servers: 2}\n";
  const auto central = [&](const std::string& keys) {
    return problems_of_cluster(kNetwork + "  storage: {place: central" + keys + "}\n" + san +
                               kApplications);
  };
  EXPECT_EQ(central(""), "");
  EXPECT_EQ(central(", access: affinity"),
            "c.yaml:3: cluster.storage.access: is not for place: central\n");
  EXPECT_EQ(central(", remote_percent: 10"),
            "c.yaml:3: cluster.storage.remote_percent: is not for place: cache or central\n");
  EXPECT_EQ(problems_of_cluster(kNetwork + "  storage: {place: cache}\napplications:\n"
                                           "  - {name: a, tasks: 1, steps: 1, remote_percent: 5, "
                                           "per_mille: {read: 1000}}\n"),
            "c.yaml:5: applications[0].remote_percent: is not for place: cache or central\n");
  EXPECT_EQ(problems_of("storage: {place: external}"),
            "c.yaml:5: applications[0].tasks: is all nodes, and place: external needs others\n");
}

TEST(ClusterScenario, ReplicasAreOnOtherServers) {
  EXPECT_EQ(problems_of("san: {servers: 3, replicas: 3}"),
            "c.yaml:3: cluster.san.replicas: \"3\" is out of range: 0 to 2\n");
  ConfigErrors errors("c.yaml");
  const ClusterScenario scenario =
      read_cluster_scenario(kNetwork + "  san: {servers: 1}\n" + kApplications, errors);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_EQ(scenario.storage.replicas, 0U);
}

TEST(ClusterScenario, WhatWouldNotFitIntoMemoryIsAMistake) {
  const std::string network =
      "cluster: {network: {topology: switch, nodes: 10000, link_rate: 1 GB/s}}\n";
  const auto with = [&](const std::string& keys) {
    return problems_of_cluster(network + "applications:\n  - {name: a, tasks: 10000, " + keys +
                               "per_mille: {communicate: 1000}}\n");
  };
  EXPECT_EQ(
      with("steps: 1, pattern: all_to_all, "),
      "c.yaml:3: applications[0].pattern: gives 99990000 messages in a step; at most 10000000 "
      "are possible\n");
  EXPECT_EQ(
      with("steps: 1, messages: 1001, "),
      "c.yaml:3: applications[0].pattern: gives 10010000 messages in a step; at most 10000000 "
      "are possible\n");
  EXPECT_EQ(with("steps: 20000, "),
            "c.yaml:3: applications[0].steps: are 200000000 of all tasks; at most 100000000 are "
            "possible\n");
}

}  // namespace
}  // namespace vpfs::sim
