#include "control/host/config_changes.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/host/config_values.h"
#include "test/control/host/program_config.h"

namespace vpfs::control {
namespace {

using test::good_program;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Lines = std::vector<std::string>;

ConfigValues values_of(const HostConfig& config) {
  ConfigValues values;
  add_process(values, config, test::kProgramName);
  add_stage_limits(values, config);
  add_control(values, config);
  add_scheduler(values, config);
  return values;
}

Lines changes(const HostConfig& before, const HostConfig& after) {
  Lines lines = differences(values_of(before), values_of(after));
  for (std::string& line : stage_changes(before, after)) lines.push_back(std::move(line));
  return lines;
}

Lines between(const std::string& before, const std::string& after) {
  return changes(good_program(before), good_program(after));
}

TEST(StageChanges, SameConfigurationChangesNothing) {
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
    {"limits", "", "virtual_pfs: 7", "limits.virtual_pfs 10000 -> 7"},
    {"limits", "", "idle: 2 h", "limits.idle 1 h -> 2 h"},
    {"limits", "max_held_per_client: off", "max_held_per_client: 9",
     "limits.max_held_per_client off -> 9"},
    {"limits", "max_held_per_client: 9", "", "limits.max_held_per_client 9 -> auto"},
    {"control", "", "name: stor0", "control.name none -> stor0"},
    {"control", "coordinator: /run/c", "", "control.coordinator /run/c -> none"},
    {"control", "coordinator: [/run/a, /run/b]", "coordinator: /run/b",
     "control.coordinator /run/a, /run/b -> /run/b"},
    {"control", "", "fallback: 5 MiB/s", "control.fallback configured -> 5 MiB/s"},
    {"program", "", "status_file: s.json", "program.status_file none -> s.json"},
    {"program", "log: /var/log/vpfs.log", "", "program.log /var/log/vpfs.log -> stderr"},
    {"program", "", "log_level: warn", "program.log_level info -> warn"},
    {"program", "status_interval: 1 s", "", "program.status_interval 1 s -> 5 s"},
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
    {"scheduler", "", "sfq: {anticipation: {max_loss: 2.5 %}}",
     "scheduler: now \"slots are kept for applications that come back soon; it costs 2.5 % at "
     "most\""},
    {"scheduler", "sfq: {anticipation: {max_loss: 0 %}}", "",
     "scheduler: no longer \"applications that pause for a moment keep their claim\""},
    {"scheduler", "policy: adaptbf, adaptbf: {token: 32 KiB}",
     "policy: adaptbf, adaptbf: {token: 64 KiB}", "scheduler: settings of adaptbf changed"}};

TEST(StageChanges, EachSettingIsNamedWithBothValues) {
  for (const auto& [section, before, after, said] : kChanges) {
    const Lines lines = between(fmt::format("{}: {{{}}}\n", section, before),
                                fmt::format("{}: {{{}}}\n", section, after));
    EXPECT_THAT(lines, Contains(said));
  }
}

TEST(StageChanges, SharesOfVirtualPfsesAreComparedWordByWord) {
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

TEST(StageChanges, RegisteredJobsAreComparedById) {
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

TEST(StageChanges, RulesWithoutNamesAreToldApartByWhatTheyDo) {
  EXPECT_THAT(between(rules({"1.1.1.1", "2.2.2.2"}), rules({"3.3.3.3", "1.1.1.1", "2.2.2.2"})),
              ElementsAre("rules[0] added: client 3.3.3.3 -> x"));
  EXPECT_THAT(between(rules({"1.1.1.1", "2.2.2.2", "1.1.1.1"}), rules({"1.1.1.1", "1.1.1.1"})),
              ElementsAre("rules[1] removed: client 2.2.2.2 -> x"));
  EXPECT_THAT(between(rules({"1.1.1.1", "2.2.2.2"}), rules({"1.1.1.1", "4.4.4.4"})),
              ElementsAre("rules[1] changed: client 4.4.4.4 -> x, was: client 2.2.2.2 -> x"));
  EXPECT_THAT(between(rules({"1.1.1.1", "2.2.2.2"}), rules({"2.2.2.2", "1.1.1.1"})),
              ElementsAre("the order of rules changed: client 2.2.2.2 -> x, client 1.1.1.1 -> x"));
}

TEST(StageChanges, RulesWithNamesAreToldApartByThem) {
  const std::string text = rules({"1.1.1.1", "2.2.2.2", "3.3.3.3"});
  HostConfig before = good_program(text);
  before.rules[0].name = "one";
  before.rules[1].name = "two";
  before.rules[2].name = "rules[2]";
  HostConfig after = before;
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

TEST(StageChanges, RuleThatReadsTheSameButDoesSomethingElseHasChanged) {
  HostConfig before = good_program(rules({"1.1.1.1"}));
  HostConfig after = before;
  after.rules[0].origin = stage::RuleOrigin::administrator;
  after.rules[0].text.condition = "client=1.1.1.1";
  EXPECT_THAT(changes(before, after), IsEmpty());
  after.rules[0].mode = stage::RuleMode::shadow;
  EXPECT_THAT(changes(before, after), SizeIs(1));
}

// Classes are numbers inside.
TEST(StageChanges, RuleOfAClassThatOnlyMovedHasNotChanged) {
  const auto text = [](const std::string& names) {
    return "scheduler: {classes: {mode: strict, names: [" + names +
           "]}}\n"
           "virtual_pfs: {x: {}}\nrules: [{match: {client: 1.1.1.1}, virtual_pfs: x, class: a}]\n";
  };
  EXPECT_THAT(between(text("{name: a}, {name: b}"), text("{name: b}, {name: a}")),
              ElementsAre("scheduler.classes.names a : b -> b : a"));
}

}  // namespace
}  // namespace vpfs::control
