#include "sim/proxies/whatif/scenario.h"

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "test/support/places.h"

namespace vpfs::sim {
namespace {

using namespace std::chrono_literals;

const std::string kHead =
    "configuration: p.yaml\n"
    "servers:\n"
    "  count: 2\n"
    "  device: {bandwidth: 100 MiB/s}\n";

std::string problems_of_scenario(const std::string& text) {
  ConfigErrors errors("s.yaml");
  (void)read_scenario(text, errors);
  return errors.to_string();
}

TEST(SimScenario, TheExampleHasAllKeysAndIsGood) {
  std::ifstream file(test::source("conf/sim/two-jobs.yaml"));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  ConfigErrors errors("two-jobs.yaml");
  const Scenario scenario = read_scenario(text, errors);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_EQ(scenario.configuration, "../sfq.yaml");
  EXPECT_EQ(scenario.servers, 2U);
  ASSERT_EQ(scenario.applications.size(), 3U);
  EXPECT_EQ(scenario.applications[0].outstanding, 8U);
  EXPECT_EQ(scenario.applications[1].jobid, "analysis");
  EXPECT_EQ(scenario.applications[2].arrivals, SimulatedApplication::Arrivals::random);
  EXPECT_EQ(scenario.applications[2].between, 10ms);
}

TEST(SimScenario, MistakesAreNamedWithLineAndKey) {
  EXPECT_EQ(problems_of_scenario("servers: {device: {bandwidth: 1 MiB/s}}\n"),
            "s.yaml:1: configuration: is missing\ns.yaml:1: applications: is missing\n");
  const std::string with_app = kHead + "applications:\n  - {name: a, ";
  EXPECT_EQ(problems_of_scenario(with_app + "sise: 1 MiB}\n"),
            "s.yaml:6: applications[0].sise: unknown key; did you mean \"size\"?\n");
  EXPECT_EQ(problems_of_scenario(with_app + "servers: {first: 1, count: 2}}\n"),
            "s.yaml:6: applications[0].servers.count: \"2\" is out of range: 1 to 1\n");
  EXPECT_EQ(problems_of_scenario(with_app + "servers: {first: 1}, datafiles: 2}\n"),
            "s.yaml:6: applications[0].datafiles: is more than the 1 servers\n");
  EXPECT_EQ(problems_of_scenario(with_app + "datafiles: 3}\n"),
            "s.yaml:6: applications[0].datafiles: is more than the 2 servers\n");
  EXPECT_EQ(problems_of_scenario(with_app + "rate: 5}\n"),
            "s.yaml:6: applications[0].rate: is for arrivals: even or random\n");
  EXPECT_EQ(problems_of_scenario(with_app + "arrivals: even}\n"),
            "s.yaml:6: applications[0].rate: is missing\n");
  EXPECT_EQ(problems_of_scenario(with_app + "arrivals: even, rate: 5, outstanding: 2}\n"),
            "s.yaml:6: applications[0].outstanding: is for arrivals: closed\n");
  EXPECT_EQ(problems_of_scenario(with_app + "arrivals: recorded}\n"),
            "s.yaml:6: applications[0].recording: is missing\n");
  EXPECT_EQ(problems_of_scenario(with_app + "recording: r.json}\n"),
            "s.yaml:6: applications[0].recording: is for arrivals: recorded\n");
  EXPECT_EQ(problems_of_scenario(with_app + "arrivals: recorded, recording: r.json, rate: 5}\n"),
            "s.yaml:6: applications[0].rate: is not for arrivals: recorded\n");
  EXPECT_EQ(problems_of_scenario(with_app + "client: host}\n"),
            "s.yaml:6: applications[0].client: 'host' is not an IP address\n");
  EXPECT_EQ(problems_of_scenario(with_app + "start: 2 s, stop: 1 s}\n"),
            "s.yaml:6: applications[0].stop: is too early: expected a time after `start`\n");
  EXPECT_EQ(problems_of_scenario(with_app + "size: 2 MiB, file_size: 1 MiB}\n"),
            "s.yaml:6: applications[0].file_size: is smaller than one request\n");
  EXPECT_EQ(problems_of_scenario(with_app + "processes: 100000, outstanding: 1000}\n"),
            "s.yaml:5: applications: have 100000000 requests under way; at most 10000000 are "
            "possible\n");
  EXPECT_EQ(problems_of_scenario(with_app + "}\n  - {name: a}\n"),
            "s.yaml:7: applications[1].name: 'a' is listed twice\n");
  EXPECT_NE(problems_of_scenario(with_app + "size: -1}\n"), "");
  EXPECT_NE(problems_of_scenario(kHead + "applications: []\n"), "");
}

TEST(SimScenario, ACoordinatorHasWhatItsPolicyNeeds) {
  const auto with = [](const std::string& keys) {
    return problems_of_scenario(kHead + "applications: [{name: a}]\ncoordinator: {" + keys + "}\n");
  };
  EXPECT_EQ(with("policy: total"), "");
  EXPECT_EQ(with("policy: psfa, capacity: 1 GiB/s"), "");
  EXPECT_EQ(with("policy: psfa"), "s.yaml:6: coordinator.capacity: is missing\n");
  EXPECT_EQ(with("capacity: 1 GiB/s"), "s.yaml:6: coordinator.capacity: is for policy: psfa\n");
  EXPECT_EQ(with("period: 1 s, lease: 1 s"),
            "s.yaml:6: coordinator.lease: is not above the period\n");
  EXPECT_EQ(with("round_trip: 50 ms"),
            "s.yaml:6: coordinator.round_trip: is not below the period\n");
  EXPECT_EQ(with("away: {from: 2 s, until: 1 s}"),
            "s.yaml:6: coordinator.away.until: is not a period after `from`\n");
}

TEST(SimScenario, TheExampleOfASiteIsGood) {
  std::ifstream file(test::source("conf/sim/site.yaml"));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  ConfigErrors errors("site.yaml");
  const Scenario scenario = read_scenario(text, errors);
  EXPECT_EQ(errors.to_string(), "");
  ASSERT_TRUE(scenario.coordinator.has_value());
  EXPECT_EQ(scenario.coordinator->policy->name, "total");
  EXPECT_EQ(scenario.coordinator->away->until, 16s);
  EXPECT_EQ(scenario.applications[1].servers, 1U);
  EXPECT_EQ(scenario.applications[0].servers, 4U);
}

}  // namespace
}  // namespace vpfs::sim
