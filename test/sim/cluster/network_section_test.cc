#include "sim/cluster/network_section.h"

#include <string>

#include <gtest/gtest.h>

namespace vpfs::sim {
namespace {

struct Outcome {
  ClusterNetwork network;
  std::string problems;
};

// A mistake is on line 1 for keys of the section, and further below for links.
Outcome read_section(const std::string& section) {
  ConfigErrors errors("n.yaml");
  Outcome outcome;
  {
    ConfigReader reader("network: " + section, errors);
    outcome.network = read_network(reader.child("network"));
  }
  outcome.problems = errors.to_string();
  return outcome;
}

NodeId nodes(const std::string& section) {
  const Outcome outcome = read_section("{link_rate: 1 GB/s, " + section + "}");
  EXPECT_EQ(outcome.problems, "");
  return outcome.network.topology == nullptr ? 0 : outcome.network.topology->nodes();
}

TEST(NetworkSection, HasEachTopology) {
  EXPECT_EQ(nodes("topology: torus, size: {x: 4, y: 3, z: 2}"), 24U);
  EXPECT_EQ(nodes("topology: fat_tree, ports: 4, levels: 3"), 64U);
  EXPECT_EQ(nodes("topology: dragonfly, nodes_per_router: 2, routers_per_group: 4, "
                  "globals_per_router: 2"),
            72U);
  EXPECT_EQ(nodes("topology: switch, nodes: 5"), 5U);
  EXPECT_EQ(nodes("topology: links, nodes: [a, b], links: [{between: [a, b]}]"), 2U);
}

TEST(NetworkSection, ARateStandsForTheOnesThatAreNotGiven) {
  const Outcome outcome = read_section(
      "{topology: dragonfly, nodes_per_router: 1, routers_per_group: 2, globals_per_router: 1, "
      "link_rate: 1 GB/s, switch_rate: 2 GB/s}");
  EXPECT_EQ(outcome.problems, "");
  const std::vector<NetworkLink>& links = outcome.network.topology->links();
  EXPECT_EQ(links.front().capacity, BytesPerSecond{1'000'000'000});
  EXPECT_EQ(links.back().capacity, BytesPerSecond{2'000'000'000});
}

TEST(NetworkSection, SharingIsMaxMinFairUnlessItSaysOtherwise) {
  const std::string nodes = "{topology: switch, nodes: 2, link_rate: 1 GB/s";
  EXPECT_EQ(read_section(nodes + "}").network.policy.sharing, Sharing::max_min);
  EXPECT_EQ(read_section(nodes + ", sharing: equal}").network.policy.sharing, Sharing::equal);
}

TEST(NetworkSection, MistakesAreNamedWithLineAndKey) {
  EXPECT_EQ(
      read_section("{topology: ring, nodes: 4}").problems,
      "n.yaml:1: network.topology: \"ring\" is not one of: torus, fat_tree, dragonfly, switch, "
      "links\n");
  EXPECT_EQ(read_section("{nodes: 4}").problems, "n.yaml:1: network.topology: is missing\n");
  EXPECT_EQ(
      read_section("{topology: switch, link_rate: 1 GB/s, nodes: 2, levels: 2}").problems,
      "n.yaml:1: network.levels: unknown key (known here: topology, nodes, link_rate, sharing, "
      "classes, parts)\n");
  EXPECT_EQ(read_section("{topology: switch, nodes: 2}").problems,
            "n.yaml:1: network.link_rate: is missing\n");
  EXPECT_EQ(read_section("{topology: fat_tree, ports: 100, levels: 9, link_rate: 1 GB/s}").problems,
            "n.yaml:1: network.topology: a 100:9 fat tree has more than 4194304 links\n");
  EXPECT_EQ(
      read_section("{topology: switch, nodes: 2, link_rate: 1 GB/s, parts: {storage: 1}}").problems,
      "n.yaml:1: network.parts: is for classes: apportioned\n");
  EXPECT_EQ(read_section("{topology: switch, nodes: 2, link_rate: 1 GB/s, classes: apportioned}")
                .problems,
            "n.yaml:1: network.parts: is missing\n");
}

// Links from line 5 on.
std::string problems_of_links(const std::string& links) {
  return read_section("\n  topology: links\n  nodes: [a, b, c]\n  switches: [s]\n  links:\n" +
                      links)
      .problems;
}

TEST(NetworkSection, MistakesOfGivenLinksAreNamedWithLineAndKey) {
  EXPECT_EQ(problems_of_links("    - {between: [a, x], rate: 1 GB/s}\n"),
            "n.yaml:6: network.links[0].between: there is no node or switch 'x'\n");
  EXPECT_EQ(problems_of_links("    - {between: [a], rate: 1 GB/s}\n"),
            "n.yaml:6: network.links[0].between: must have two names\n");
  EXPECT_EQ(problems_of_links("    - {from: a, to: a, rate: 1 GB/s}\n"),
            "n.yaml:6: network.links[0].to: leads to where it comes from\n");
  EXPECT_EQ(problems_of_links("    - {from: a, rate: 1 GB/s}\n"),
            "n.yaml:6: network.links[0].to: is missing\n");
  EXPECT_EQ(problems_of_links("    - {from: a, to: b}\n"),
            "n.yaml:6: network.links[0].rate: is missing\n");
  EXPECT_EQ(problems_of_links("    - {between: [a, b], to: b, rate: 1 GB/s}\n"),
            "n.yaml:6: network.links[0].to: is not for a link with `between`\n");
  EXPECT_NE(problems_of_links("    - {from: a, to: b, rate: -1}\n"), "");
  EXPECT_EQ(read_section("{topology: links, nodes: [a, a], link_rate: 1 GB/s, links: []}").problems,
            "n.yaml:1: network.nodes: 'a' is listed twice\n");
  EXPECT_EQ(read_section("{topology: links, nodes: [a], link_rate: 1 GB/s, links: []}").problems,
            "n.yaml:1: network.nodes: must be at least two\n");
}

TEST(NetworkSection, EveryNodeMustReachEveryOther) {
  const std::string to_a_and_b =
      "    - {between: [a, s], rate: 1 GB/s}\n    - {between: [b, s], rate: 1 GB/s}\n";
  EXPECT_EQ(problems_of_links(to_a_and_b), "n.yaml:5: network.links: no way leads from a to c\n");
  EXPECT_EQ(problems_of_links(to_a_and_b + "    - {from: s, to: c, rate: 1 GB/s}\n"),
            "n.yaml:5: network.links: no way leads from c to a\n");
  EXPECT_EQ(problems_of_links(to_a_and_b + "    - {between: [s, c], rate: 1 GB/s}\n"), "");
}

TEST(NetworkSection, VerticesHaveTheirNamesOrNumbers) {
  const ClusterNetwork given =
      read_section(
          "{topology: links, nodes: [a, b], switches: [s], link_rate: 1 GB/s, links: [{between: "
          "[a, s]}, {between: [b, s]}]}")
          .network;
  EXPECT_EQ(given.name_of(1), "b");
  EXPECT_EQ(given.name_of(2), "s");
  const ClusterNetwork made =
      read_section("{topology: switch, nodes: 2, link_rate: 1 GB/s}").network;
  EXPECT_EQ(made.name_of(1), "node 1");
  EXPECT_EQ(made.name_of(2), "switch 0");
}

}  // namespace
}  // namespace vpfs::sim
