#include "proxy/config_changes.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::proxy {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Lines = std::vector<std::string>;

Config config_of(const std::string& text) {
  ConfigErrors errors("p.yaml");
  Config config = parse_config(text, errors);
  EXPECT_EQ(errors.to_string(), "");
  return config;
}

// Both texts are without the addresses.
Lines between(const std::string& before, const std::string& after) {
  const std::string proxy = "proxy: {listen: 'a:1', upstream: 'b:1'}\n";
  return changes(config_of(proxy + before), config_of(proxy + after));
}

TEST(ConfigChanges, SameConfigurationChangesNothing) {
  const std::string text =
      "scheduler: {policy: sfq, classes: {mode: strict, names: [{name: a}, {name: b}]}}\n"
      "virtual_pfs: {x: {weight: 2, rate: 1 MiB/s}, 'job-{jobid}': {}}\n"
      "rules: [{match: {client: 10.0.0.0/8}, virtual_pfs: x, class: a},\n"
      "        {match: {client: 10.0.0.0/8}, virtual_pfs: x, class: a},\n"
      "        {match: {hint: {jobid: '*'}}, virtual_pfs: 'job-{jobid}'}]\n"
      "registered_jobs: [{jobid: a, client: 10.0.0.1}]\n"
      "jobs: registered\n";
  EXPECT_THAT(between(text, text), IsEmpty());
}

struct Change {
  const char* section;
  const char* before;
  const char* after;
  const char* said;
};

// Each key of the sections with settings.
constexpr Change kChanges[] = {
    {"limits", "", "connections: 5", "limits.connections 10000 -> 5"},
    {"limits", "held_requests: 1", "", "limits.held_requests 1 -> 4096"},
    {"limits", "", "held_bytes: 2 MiB", "limits.held_bytes 1 MiB -> 2 MiB"},
    {"limits", "", "virtual_pfs: 7", "limits.virtual_pfs 10000 -> 7"},
    {"limits", "", "idle: 2 h", "limits.idle 1 h -> 2 h"},
    {"limits", "max_held_per_client: off", "max_held_per_client: 9",
     "limits.max_held_per_client off -> 9"},
    {"limits", "max_held_per_client: 9", "", "limits.max_held_per_client 9 -> auto"},
    {"timeouts", "", "connect: 1 s", "timeouts.connect 5 s -> 1 s"},
    {"timeouts", "", "hold: 2 s", "timeouts.hold auto -> 2 s"},
    {"timeouts", "", "hold_min: 2 s", "timeouts.hold_min 1 min -> 2 s"},
    {"timeouts", "", "service: 2 s", "timeouts.service 1 min -> 2 s"},
    {"timeouts", "", "client_stall: 1 s", "timeouts.client_stall 2 s -> 1 s"},
    {"timeouts", "", "client_min_rate: 2 MiB/s", "timeouts.client_min_rate 1 MiB/s -> 2 MiB/s"},
    {"timeouts", "", "drain: 1 s", "timeouts.drain 20 s -> 1 s"},
    {"scheduler", "policy: sfq", "policy: tbf", "scheduler.policy sfq -> tbf"},
    {"scheduler", "depth: 16", "depth: 32", "scheduler.depth.requests 16 -> 32"},
    {"scheduler", "depth: auto", "depth: 32", "scheduler.depth.requests auto -> 32"},
    {"scheduler", "", "depth: {bytes: 4 MiB}", "scheduler.depth.bytes none -> 4 MiB"},
    {"scheduler", "", "cost: {per_request: 1 KiB}", "scheduler.cost.per_request 64 KiB -> 1 KiB"},
    {"scheduler", "", "cost: {read_factor: 0.5}", "scheduler.cost.read_factor 1 -> 0.5"},
    {"scheduler", "", "cost: {write_factor: 2}", "scheduler.cost.write_factor 1 -> 2"},
    {"scheduler", "", "cost: {metadata: 1 KiB}", "scheduler.cost.metadata 16 KiB -> 1 KiB"},
    {"scheduler", "", "schedule: [io, metadata]", "scheduler.schedule [io] -> [io, metadata]"},
    {"scheduler", "", "classes: {mode: strict, names: [{name: a}, {name: b}]}",
     "scheduler.classes.mode none -> strict"},
    {"scheduler", "classes: {mode: apportion, names: [{name: a, share: 3}, {name: b}]}",
     "classes: {mode: apportion, names: [{name: a, share: 4}, {name: b}]}",
     "scheduler.classes.names a 3 : b 1 -> a 4 : b 1"},
    {"scheduler", "classes: {mode: strict, names: [{name: a}, {name: b}]}",
     "classes: {mode: strict, max_starvation: 1 s, names: [{name: a}, {name: b}]}",
     "scheduler.classes.max_starvation none -> 1 s"},
    {"scheduler", "policy: edf, edf: {capacity: 1 MiB/s}", "policy: edf, edf: {capacity: 2 MiB/s}",
     "scheduler: \"promises count on 1 MiB/s and requests of 4 MiB at most\" -> "
     "\"promises count on 2 MiB/s and requests of 4 MiB at most\""},
    {"scheduler", "policy: adaptbf, adaptbf: {token: 32 KiB}",
     "policy: adaptbf, adaptbf: {token: 64 KiB}", "scheduler: settings of adaptbf changed"}};

TEST(ConfigChanges, EachSettingIsNamedWithBothValues) {
  for (const auto& [section, before, after, said] : kChanges) {
    const Lines lines = between(fmt::format("{}: {{{}}}\n", section, before),
                                fmt::format("{}: {{{}}}\n", section, after));
    EXPECT_THAT(lines, Contains(said));
  }
}

TEST(ConfigChanges, EachSettingOfTheProxyIsNamedWithBothValues) {
  const std::string fixed = "proxy: {listen: 'a:1', upstream: 'b:1', protocol: beegfs";
  const Config before = config_of(fixed + "}");
  const Config after = config_of(
      fixed +
      ", servers: [10.0.0.1, 10.0.0.2], workers: 2, status_file: s.json, status_interval: 1 s, "
      "log: /var/log/vpfs.log, log_level: warn, upstream_congestion: bbr, write_back_by_file: "
      "false}");
  EXPECT_THAT(changes(before, after),
              ElementsAre("proxy.servers none -> 10.0.0.1, 10.0.0.2",
                          "proxy.write_back_by_file true -> false", "proxy.workers 1 -> 2",
                          "proxy.status_file none -> s.json", "proxy.status_interval 5 s -> 1 s",
                          "proxy.log stderr -> /var/log/vpfs.log", "proxy.log_level info -> warn",
                          "proxy.upstream_congestion cubic -> bbr"));
  EXPECT_THAT(changes(before, config_of("proxy: {listen: 'c:1', upstream: 'd:1'}")),
              ElementsAre("proxy.listen a:1 -> c:1", "proxy.upstream b:1 -> d:1",
                          "proxy.protocol beegfs -> orangefs"));
}

TEST(ConfigChanges, SharesOfVirtualPfsesAreComparedWordByWord) {
  EXPECT_THAT(between("virtual_pfs: {a: {weight: 4}, b: {rate: 1 MiB/s, operations: 5}, c: {}}\n",
                      "virtual_pfs: {d: {min: 1 MiB/s}, b: {rate: 2 MiB/s}, a: {weight: "
                      "8, burst_operations: 4, operations: 9}}\n"
                      "scheduler: {policy: sfq}\n"),
              ElementsAre("virtual PFS d added: weight 1, min 1 MiB/s",
                          "virtual PFS b changed: rate 1 MiB/s -> 2 MiB/s, operations 5 -> none, "
                          "burst_operations 3 -> none",
                          "virtual PFS a changed: weight 4 -> 8, operations none -> 9, "
                          "burst_operations none -> 4",
                          "virtual PFS c removed"));
  const std::string edf = "scheduler: {policy: edf, edf: {capacity: 400 MiB/s}}\nvirtual_pfs: ";
  EXPECT_THAT(
      between(edf + "{a: {latency: 1 s}}", edf + "{a: {finish: {bytes: 1 GiB, within: 1 h}}}"),
      ElementsAre("virtual PFS a changed: burst none -> 3 MiB, finish.bytes none -> 1 GiB, "
                  "finish.within none -> 1 h, latency 1 s -> none"));
  EXPECT_THAT(between("scheduler: {policy: adaptbf}\nvirtual_pfs: {a: {nodes: 3}}",
                      "scheduler: {policy: adaptbf}\nvirtual_pfs: {a: {nodes: 4}}"),
              ElementsAre("virtual PFS a changed: nodes 3 -> 4"));
}

TEST(ConfigChanges, RegisteredJobsAreComparedById) {
  EXPECT_THAT(between("jobs: registered\n"
                      "registered_jobs: [{jobid: a, client: 10.0.0.1}, {jobid: b, client: "
                      "10.0.0.1}, {jobid: c, client: 10.0.0.1}]\n",
                      "jobs: registered\n"
                      "registered_jobs: [{jobid: c, client: 10.0.0.1}, {jobid: b, client: "
                      "10.0.0.2}, {jobid: d, client: 10.0.0.1}]\n"),
              ElementsAre("job b changed", "job d registered", "job a no longer registered"));
  EXPECT_THAT(between("jobs: registered\nregistered_jobs: [{jobid: a, client: 10.0.0.1}]\n", ""),
              ElementsAre("jobs registered -> trust", "job a no longer registered"));
}

// Rules by their words.
std::string rules(const Lines& conditions) {
  std::string text = "virtual_pfs: {x: {}}\nrules:\n";
  for (const std::string& each : conditions) {
    text += fmt::format("  - {{match: {{client: {}}}, virtual_pfs: x}}\n", each);
  }
  return text;
}

TEST(ConfigChanges, RulesWithoutNamesAreToldApartByWhatTheyDo) {
  EXPECT_THAT(between(rules({"1.1.1.1", "2.2.2.2"}), rules({"3.3.3.3", "1.1.1.1", "2.2.2.2"})),
              ElementsAre("rules[0] added: client 3.3.3.3 -> x"));
  EXPECT_THAT(between(rules({"1.1.1.1", "2.2.2.2", "1.1.1.1"}), rules({"1.1.1.1", "1.1.1.1"})),
              ElementsAre("rules[1] removed: client 2.2.2.2 -> x"));
  EXPECT_THAT(between(rules({"1.1.1.1", "2.2.2.2"}), rules({"1.1.1.1", "4.4.4.4"})),
              ElementsAre("rules[1] changed: client 4.4.4.4 -> x, was: client 2.2.2.2 -> x"));
  EXPECT_THAT(between(rules({"1.1.1.1", "2.2.2.2"}), rules({"2.2.2.2", "1.1.1.1"})),
              ElementsAre("the order of rules changed: client 2.2.2.2 -> x, client 1.1.1.1 -> x"));
}

TEST(ConfigChanges, RulesWithNamesAreToldApartByThem) {
  const std::string text =
      "proxy: {listen: 'a:1', upstream: 'b:1'}\n" + rules({"1.1.1.1", "2.2.2.2", "3.3.3.3"});
  Config before = config_of(text);
  before.rules[0].name = "one";
  before.rules[1].name = "two";
  before.rules[2].name = "rules[2]";
  Config after = before;
  std::swap(after.rules[0], after.rules[1]);
  after.rules[0].text.condition = "client=5.5.5.5";
  after.rules[0].any_of = {{.clients = {"5.5.5.5"}}};
  after.rules[2].name = "three";
  EXPECT_THAT(changes(before, after),
              ElementsAre("rules[2] removed: client 3.3.3.3 -> x",
                          "rule two changed: client 5.5.5.5 -> x, was: client 2.2.2.2 -> x",
                          "rule three added: client 3.3.3.3 -> x",
                          "the order of rules changed: two, one, three"));
}

TEST(ConfigChanges, RuleThatReadsTheSameButDoesSomethingElseHasChanged) {
  Config before = config_of("proxy: {listen: 'a:1', upstream: 'b:1'}\n" + rules({"1.1.1.1"}));
  Config after = before;
  after.rules[0].origin = stage::RuleOrigin::administrator;
  after.rules[0].text.condition = "client=1.1.1.1";
  EXPECT_THAT(changes(before, after), IsEmpty());
  after.rules[0].mode = stage::RuleMode::shadow;
  EXPECT_THAT(changes(before, after), SizeIs(1));
}

// Classes are numbers inside.
TEST(ConfigChanges, RuleOfAClassThatOnlyMovedHasNotChanged) {
  const auto text = [](const std::string& names) {
    return "scheduler: {classes: {mode: strict, names: [" + names +
           "]}}\n"
           "virtual_pfs: {x: {}}\nrules: [{match: {client: 1.1.1.1}, virtual_pfs: x, class: a}]\n";
  };
  EXPECT_THAT(between(text("{name: a}, {name: b}"), text("{name: b}, {name: a}")),
              ElementsAre("scheduler.classes.names a : b -> b : a"));
}

}  // namespace
}  // namespace vpfs::proxy
