#include "sim/cluster/cluster.h"

#include <string>
#include <tuple>

#include <gtest/gtest.h>

namespace vpfs::sim {
namespace {

using namespace std::chrono_literals;

ClusterScenario good_scenario(const std::string& text) {
  ConfigErrors errors("c.yaml");
  ClusterScenario scenario = read_cluster_scenario(text, errors);
  EXPECT_EQ(errors.to_string(), "");
  return scenario;
}

ClusterResult run(const std::string& text) {
  const ClusterScenario scenario = good_scenario(text);
  Cluster cluster(scenario);
  EXPECT_TRUE(cluster.run(10'000'000));
  EXPECT_TRUE(cluster.is_done());
  EXPECT_EQ(cluster.ended(), cluster.applications());
  return cluster.result();
}

// Two nodes at a switch, 1 GB/s each way.
std::string two_nodes(const std::string& sections, const std::string& application) {
  return "cluster:\n  network: {topology: switch, nodes: 2, link_rate: 1 GB/s}\n" + sections +
         "applications:\n  - {name: a, " + application + "}\n";
}

TEST(Cluster, LocalWritesTakeWhatTheDeviceTakes) {
  const ClusterResult result =
      run(two_nodes("  storage: {write: 500 MB/s}\n",
                    "tasks: 2, steps: 3, per_mille: {write: 1000}, io_size: 1 GB"));
  const ClusterApplicationResult& a = result.applications.at(0);
  EXPECT_EQ(a.waiting(), 0s);
  EXPECT_EQ(a.running(), 6s);
  EXPECT_EQ(result.makespan, 6s);
  EXPECT_EQ(a.tally.local, Bytes{6'000'000'000});
  EXPECT_EQ(a.tally.remote, Bytes{});
  EXPECT_EQ(Duration(a.tally.time(Step::write)), 12s);  // of both tasks
  EXPECT_EQ(Duration(a.tally.time(Step::read)), 0s);
  ASSERT_EQ(result.links.size(), 2U);
  EXPECT_EQ(result.links[0].name, "node 0 writes");
  EXPECT_EQ(result.links[0].carried, Bytes{3'000'000'000});
  EXPECT_GT(result.events, 0U);
}

TEST(Cluster, RemoteReadsPassTheNetwork) {
  const ClusterResult result =
      run(two_nodes("  storage: {read: 2 GB/s, access: affinity, remote_percent: 100}\n",
                    "tasks: 2, steps: 1, per_mille: {read: 1000}, io_size: 1 GB"));
  EXPECT_EQ(result.applications.at(0).running(), 1s);
  EXPECT_EQ(result.applications.at(0).tally.remote, Bytes{2'000'000'000});
  // The links are full, the devices half busy.
  EXPECT_EQ(result.links.at(0).name, "node 0 > switch 0");
  EXPECT_EQ(result.links.at(0).rate, BytesPerSecond{1'000'000'000});
  EXPECT_EQ(result.links.back().name, "node 1 reads");
}

TEST(Cluster, CentralServersAreSharedByAll) {
  const ClusterResult result =
      run(two_nodes("  storage: {place: central}\n  san: {servers: 1, front_end: 500 MB/s}\n",
                    "tasks: 2, steps: 1, per_mille: {read: 1000}, io_size: 1 GB"));
  EXPECT_EQ(result.applications.at(0).running(), 4s);
  EXPECT_EQ(result.applications.at(0).tally.central, Bytes{2'000'000'000});
  EXPECT_EQ(result.links.at(0).name, "server 0 front end out");
}

TEST(Cluster, StagingBringsWhatIsRead) {
  const ClusterResult result = run(two_nodes(
      "  storage: {staged: true, read: 2 GB/s}\n  san: {servers: 1, front_end: 500 MB/s}\n",
      "tasks: 1, steps: 1, per_mille: {read: 1000}, io_size: 1 GB, data_size: 1 GB"));
  // It waits two seconds for its input. It has no output.
  EXPECT_EQ(result.applications.at(0).running(), 2500ms);
  EXPECT_EQ(result.applications.at(0).tally.staged, Bytes{1'000'000'000});
  EXPECT_EQ(Duration(result.applications.at(0).tally.time(Step::read)), 500ms);
}

TEST(Cluster, ApplicationsWaitForNodes) {
  const ClusterResult result = run(
      two_nodes("",
                "count: 3, every: 1 s, start: 1 s, tasks: 2, steps: 1, per_mille: {compute: 1000}, "
                "compute_time: 4 s"));
  ASSERT_EQ(result.applications.size(), 3U);
  EXPECT_EQ(result.applications[0].name, "a 1");
  EXPECT_EQ(result.applications[2].name, "a 3");
  EXPECT_EQ(result.applications[1].waiting(), 3s);
  EXPECT_EQ(result.applications[2].waiting(), 6s);
  EXPECT_EQ(result.applications[2].ended, TimePoint() + 13s);
  EXPECT_EQ(result.makespan, 12s);
}

// A message and a write of 1 GB each share a link of 1 GB/s from a to b.
std::string shared_link(const std::string& classes) {
  return "cluster:\n"
         "  network:\n"
         "    topology: links\n"
         "    nodes: [a, b, c]\n"
         "    switches: [s]\n"
         "    link_rate: 10 GB/s\n"
         "    links:\n"
         "      - {between: [a, s]}\n"
         "      - {between: [c, s]}\n"
         "      - {from: s, to: b, rate: 1 GB/s}\n"
         "      - {from: b, to: s}\n" +
         classes +
         "  storage: {place: shared, devices: [b], write: 10 GB/s}\n"
         "applications:\n"
         "  - {name: sender, tasks: 2, io_tasks: 0, steps: 1, per_mille: {communicate: 1000},\n"
         "     pattern: ring, message_size: 1 GB, lockstep: true}\n"
         "  - {name: writer, tasks: 1, steps: 1, per_mille: {write: 1000}, io_size: 1 GB}\n";
}

TEST(Cluster, PriorityDecidesWhichFlowHasASharedLinkFirst) {
  const auto times = [](const std::string& classes) {
    const ClusterResult result = run(shared_link(classes));
    EXPECT_EQ(result.links.at(0).name, "s > b");
    return std::tuple(result.applications.at(0).running(), result.applications.at(1).running());
  };
  EXPECT_EQ(times("    classes: none\n"), std::tuple(2s, 2s));
  EXPECT_EQ(times("    classes: priority\n"), std::tuple(1s, 2s));
  EXPECT_EQ(times("    classes: apportioned\n    parts: {communication: 1, storage: 3}\n"),
            std::tuple(2s + 1ns, Duration(4s) / 3 + 1ns));  // rounded up
}

TEST(Cluster, TheSameSeedGivesTheSameRun) {
  const auto with_seed = [](const std::string& seed) {
    const ClusterResult result =
        run("seed: " + seed + "\n" +
            two_nodes(
                "  batch: {nodes: random}\n  storage: {remote_percent: 50}\n",
                "count: 5, every: 1 s, arrivals: random, tasks: 2, steps: 20, per_mille: {compute: "
                "250, communicate: 250, read: 250, write: 250}"));
    return std::tuple(result.makespan, result.events, result.applications[4].arrived);
  };
  EXPECT_EQ(with_seed("7"), with_seed("7"));
  EXPECT_NE(with_seed("7"), with_seed("8"));
}

TEST(Cluster, WhatWouldTakeForEverIsGivenUp) {
  const ClusterScenario scenario = good_scenario(
      two_nodes("  storage: {write: 1 MB/s}\n",
                "tasks: 1, steps: 100000, per_mille: {write: 1000}, io_size: 1024 GiB"));
  Cluster cluster(scenario);
  EXPECT_FALSE(cluster.run(10'000'000));
  EXPECT_FALSE(cluster.is_done());
}

}  // namespace
}  // namespace vpfs::sim
