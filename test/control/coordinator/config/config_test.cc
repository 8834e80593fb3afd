#include "control/coordinator/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log/log.h"
#include "test/support/places.h"
#include "test/support/process.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Reading {
  Config config;
  std::vector<std::string> errors;
};
Reading read(const std::string& text) {
  ConfigErrors errors("c.yaml");
  Reading reading;
  reading.config = parse_config(text, errors);
  reading.errors = errors.lines();
  return reading;
}

// What every configuration needs, in two lines.
constexpr const char* kNeeded = "journal: j\nstages: {dial: [{address: /run/a.sock}]}\n";

std::vector<std::string> errors_with(const std::string& more) {
  return read(kNeeded + more).errors;
}

TEST(CoordinatorConfig, TheExampleIsGood) {
  const Reading reading = read(test::read_text(test::source("conf/coordinator.yaml")));
  EXPECT_THAT(reading.errors, IsEmpty());
  EXPECT_EQ(reading.config.policy, "total");
  EXPECT_EQ(reading.config.dial.size(), 2U);
  EXPECT_EQ(reading.config.jobs.size(), 2U);
}

TEST(CoordinatorConfig, TheExampleShowsTheDefaults) {
  const Config shown = read(test::read_text(test::source("conf/coordinator.yaml"))).config;
  const Config defaults = read(kNeeded).config;
  EXPECT_EQ(shown.policy, defaults.policy);
  EXPECT_EQ(shown.period, defaults.period);
  EXPECT_EQ(shown.deadline, defaults.deadline);
  EXPECT_EQ(shown.lease, defaults.lease);
  EXPECT_EQ(shown.transit, defaults.transit);
  EXPECT_EQ(shown.silent_cycles, defaults.silent_cycles);
  EXPECT_EQ(shown.cycle, defaults.cycle);
  EXPECT_EQ(shown.log, defaults.log);
  EXPECT_EQ(shown.log_level, defaults.log_level);
}

TEST(CoordinatorConfig, ReadsEveryKey) {
  const Reading reading = read(
      "name: site\n"
      "policy: static\n"
      "capacity: {bytes: 2 GiB/s, operations: 100000, metadata_operations: 20000}\n"
      "floor: {bytes: 1 MiB/s, operations: 10, metadata_operations: 5}\n"
      "period: 20ms\n"
      "deadline: 15ms\n"
      "lease: 2s\n"
      "transit: 100ms\n"
      "silent_cycles: 7\n"
      "cycle: four\n"
      "cost_model: abc\n"
      "journal: /var/lib/vpfs/j\n"
      "jobs:\n"
      "  - {name: gold, weight: 3, total_rate: 1 GiB/s, total_operations: 1000, limit: 100 MiB/s,\n"
      "     operations_limit: 50}\n"
      "  - {name: lead}\n"
      "stages:\n"
      "  certificate: c.pem\n"
      "  key: c.key\n"
      "  ca: ca.pem\n"
      "  dial:\n"
      "    - {name: ds1, address: /run/vpfs/ds1.sock}\n"
      "    - {address: 'stor1:7311'}\n"
      "  listen: {socket: /run/vpfs/stages.sock, mode: 0600, tcp: '0.0.0.0:7312',\n"
      "           certificate: l.pem, key: l.key, ca: l-ca.pem, writers: ['cert:mount']}\n"
      "control: {socket: /run/vpfs/site.sock, http: '127.0.0.1:9465'}\n"
      "parent: {address: /run/vpfs/top.sock}\n"
      "log: /var/log/vpfs.log\n"
      "log_level: debug\n");
  ASSERT_THAT(reading.errors, IsEmpty());
  const Config& config = reading.config;
  EXPECT_EQ(config.name, "site");
  EXPECT_EQ(config.policy, "static");
  EXPECT_EQ(config.capacity.bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(config.capacity.operations, 100'000U);
  EXPECT_EQ(config.capacity.metadata_operations, 20'000U);
  EXPECT_EQ(config.floor.bytes, std::uint64_t{1} << 20);
  EXPECT_EQ(config.floor.operations, 10U);
  EXPECT_EQ(config.floor.metadata_operations, 5U);
  EXPECT_EQ(config.period, 20ms);
  EXPECT_EQ(config.deadline, 15ms);
  EXPECT_EQ(config.lease, 2s);
  EXPECT_EQ(config.transit, 100ms);
  EXPECT_EQ(config.silent_cycles, 7U);
  EXPECT_EQ(config.cycle, CycleKind::four);
  EXPECT_EQ(config.cost_model, "abc");
  EXPECT_EQ(config.journal, "/var/lib/vpfs/j");
  ASSERT_EQ(config.jobs.size(), 2U);
  EXPECT_EQ(config.jobs[0].weight, 3U);
  EXPECT_EQ(config.jobs[0].most.bytes, std::uint64_t{1} << 30);
  EXPECT_EQ(config.jobs[0].most.operations, 1000U);
  EXPECT_EQ(config.jobs[0].limit.bytes, std::uint64_t{100} << 20);
  EXPECT_EQ(config.jobs[0].limit.operations, 50U);
  EXPECT_EQ(config.jobs[1].weight, std::nullopt);
  EXPECT_EQ(config.dialling.certificate, "c.pem");
  EXPECT_EQ(config.dialling.key, "c.key");
  EXPECT_EQ(config.dialling.ca, "ca.pem");
  ASSERT_EQ(config.dial.size(), 2U);
  EXPECT_EQ(config.dial[0].name, "ds1");
  EXPECT_EQ(config.dial[0].address.path, "/run/vpfs/ds1.sock");
  EXPECT_EQ(config.dial[1].name, "");
  EXPECT_EQ(config.dial[1].address.host, "stor1");
  EXPECT_EQ(config.dial[1].address.port, 7311);
  EXPECT_TRUE(config.dials_tcp());
  EXPECT_EQ(config.listen.socket, "/run/vpfs/stages.sock");
  EXPECT_EQ(config.listen.mode, 0600U);
  EXPECT_EQ(config.listen.tcp, "0.0.0.0:7312");
  EXPECT_EQ(config.listen.writers.size(), 1U);
  EXPECT_EQ(config.control.socket, "/run/vpfs/site.sock");
  EXPECT_EQ(config.http.address, "127.0.0.1:9465");
  ASSERT_TRUE(config.parent);
  EXPECT_EQ(control::to_string(config.parent->addresses), "/run/vpfs/top.sock");
  EXPECT_EQ(config.log, "/var/log/vpfs.log");
  EXPECT_EQ(config.log_level, "debug");
}

TEST(CoordinatorConfig, AJournalAndStagesAreNeeded) {
  EXPECT_THAT(read("name: x\n").errors, ElementsAre(HasSubstr("c.yaml:1: journal: is missing"),
                                                    HasSubstr("c.yaml:1: stages: is missing")));
  EXPECT_THAT(read("journal: j\nstages: {}\n").errors,
              ElementsAre(HasSubstr("c.yaml:2: stages: has neither `dial` nor `listen`")));
  EXPECT_THAT(read("journal: j\nstages:\n  listen: {socket: /s, audit: /a}\n").errors,
              ElementsAre(HasSubstr("c.yaml:3: stages.listen.audit: only the control port")));
  EXPECT_THAT(read("journal: j\nstages:\n  listen: {mode: 0600}\n").errors,
              ElementsAre(HasSubstr("c.yaml:3: stages.listen: has neither a socket nor tcp")));
}

TEST(CoordinatorConfig, WordsOfOtherSystemsAreTranslated) {
  EXPECT_THAT(errors_with("interval: 1s\n"),
              ElementsAre(HasSubstr("c.yaml:3: interval: unknown key; did you mean \"period\"?")));
  EXPECT_THAT(errors_with("capacty: {bytes: 1 GiB/s}\n"),
              ElementsAre(HasSubstr("did you mean \"capacity\"?")));
}

TEST(CoordinatorConfig, EveryMistakeOfATimeIsNamed) {
  EXPECT_THAT(errors_with("period: 2 min\n"), ElementsAre(HasSubstr("c.yaml:3: period: ")));
  EXPECT_THAT(errors_with("period: -1s\n"), ElementsAre(HasSubstr("c.yaml:3: period: ")));
  EXPECT_THAT(errors_with("deadline: 1us\n"), ElementsAre(HasSubstr("c.yaml:3: deadline: ")));
  EXPECT_THAT(errors_with("transit: 0s\n"), ElementsAre(HasSubstr("c.yaml:3: transit: ")));
  EXPECT_THAT(errors_with("silent_cycles: 0\n"),
              ElementsAre(HasSubstr("c.yaml:3: silent_cycles: ")));
  EXPECT_THAT(errors_with("cycle: three\n"), ElementsAre(HasSubstr("c.yaml:3: cycle: ")));
}

TEST(CoordinatorConfig, ALeaseOutlastsLateCycles) {
  EXPECT_THAT(errors_with("period: 50ms\nlease: 149ms\n"),
              ElementsAre(HasSubstr("c.yaml:4: lease: must be at least three periods (150 ms)")));
  EXPECT_THAT(errors_with("period: 50ms\nlease: 150ms\n"), IsEmpty());
  EXPECT_THAT(errors_with("deadline: 501ms\n"),
              ElementsAre(HasSubstr("must be at least two deadlines (1002 ms)")));
  EXPECT_THAT(errors_with("deadline: 500ms\n"), IsEmpty());
}

TEST(CoordinatorConfig, TheDeadlineFollowsThePeriod) {
  EXPECT_EQ(read(std::string(kNeeded) + "period: 100ms\n").config.deadline, 50ms);
  EXPECT_EQ(read(std::string(kNeeded) + "period: 1ms\n").config.deadline, 5ms);
  // One cycle right after the other: stages keep their leases beside one that hangs.
  const Reading at_once = read(std::string(kNeeded) + "period: 0\nlease: 3s\n");
  EXPECT_THAT(at_once.errors, IsEmpty());
  EXPECT_EQ(at_once.config.period, 0s);
  EXPECT_EQ(at_once.config.deadline, 1s);
}

TEST(CoordinatorConfig, AMisspeltJournalIsNotTakenForAFile) {
  EXPECT_THAT(errors_with("log: journl\n"),
              ElementsAre("c.yaml:3: log: 'journl' is not `stderr`, `journal` or a file with its "
                          "directory, such as ./vpfs-coordinator.log"));
  EXPECT_THAT(errors_with("log: journal\n"), IsEmpty());
  EXPECT_THAT(errors_with("log_level: loud\n"), ElementsAre(HasSubstr("c.yaml:3: log_level: ")));
}

TEST(CoordinatorConfig, APolicyIsOneOfThoseThatAreThere) {
  EXPECT_THAT(errors_with("policy: fair\n"),
              ElementsAre(::testing::AllOf(HasSubstr("c.yaml:3: policy: "), HasSubstr("psfa"),
                                           HasSubstr("static"), HasSubstr("total"))));
  EXPECT_THAT(errors_with("policy: psfa\n"), ElementsAre(HasSubstr("capacity: is missing")));
  EXPECT_THAT(errors_with("policy: psfa\ncapacity: {operations: 1}\n"), IsEmpty());
  EXPECT_THAT(errors_with("capacity: {operations: 1}\n"),
              ElementsAre(HasSubstr("c.yaml:3: capacity: is for the policy psfa, not total")))
      << "the default policy";
  // An aggregator is told what it has.
  EXPECT_THAT(errors_with("name: a\npolicy: psfa\nparent: {address: /run/p.sock}\n"), IsEmpty());
}

TEST(CoordinatorConfig, AmountsAreRates) {
  EXPECT_THAT(errors_with("policy: psfa\ncapacity: {bytes: 0 B/s}\n"),
              ElementsAre(HasSubstr("c.yaml:4: capacity.bytes: ")));
  EXPECT_THAT(errors_with("policy: psfa\ncapacity: {bytes: fast}\n"),
              ElementsAre(HasSubstr("c.yaml:4: capacity.bytes: ")));
  EXPECT_THAT(errors_with("floor: {operations: -5}\n"),
              ElementsAre(HasSubstr("c.yaml:3: floor.operations: ")));
  EXPECT_THAT(errors_with("floor: {iops: 5}\n"), ElementsAre(HasSubstr("floor.iops: unknown key")));
}

TEST(CoordinatorConfig, AJobIsThereOnceAndHasAName) {
  EXPECT_THAT(
      errors_with("jobs: [{name: a}, {name: a, weight: 0}]\n"),
      ElementsAre(HasSubstr("jobs[1].weight: "), HasSubstr("jobs[1].name: \"a\" is given twice")));
  EXPECT_THAT(errors_with("jobs: [{weight: 1}]\n"),
              ElementsAre(HasSubstr("jobs[0].name: is missing")));
  EXPECT_THAT(errors_with("jobs: [{name: a, limit: 1 MiB/s}]\n"),
              ElementsAre(HasSubstr("jobs[0].limit: is for the policy static, not total")));
  EXPECT_THAT(errors_with("jobs: [{name: a, operations_limit: 5}]\n"),
              ElementsAre(HasSubstr("jobs[0].operations_limit: is for the policy static, not "
                                    "total: `total_operations`")));
}

TEST(CoordinatorConfig, ADialledStageHasAnAddressOfItsOwn) {
  const auto dialling = [](const std::string& entries) {
    return read("journal: j\nstages:\n  dial: " + entries + "\n").errors;
  };
  EXPECT_THAT(dialling("[{name: a}]"),
              ElementsAre(HasSubstr("c.yaml:3: stages.dial[0].address: is missing")));
  EXPECT_THAT(dialling("[{address: 'what?'}]"),
              ElementsAre(HasSubstr("c.yaml:3: stages.dial[0].address: ")));
  EXPECT_THAT(dialling("[{address: /a}, {address: /a}]"),
              ElementsAre(HasSubstr("stages.dial[1].address: is given twice")));
  EXPECT_THAT(dialling("[{name: a, address: /a}, {name: a, address: /b}]"),
              ElementsAre(HasSubstr("stages.dial[1].name: \"a\" is given twice")));
  EXPECT_THAT(dialling("[{address: 'stor1:7311'}]"),
              ElementsAre(HasSubstr("stages.dial[0].address: TCP needs `certificate`, `key`")));
}

TEST(CoordinatorConfig, AParentOnAnotherHostNeedsCertificates) {
  EXPECT_THAT(errors_with("name: a\nparent: {address: 'top:7312'}\n"),
              ElementsAre(HasSubstr("c.yaml:4: parent.address: TCP needs")));
  const Reading reading =
      read(std::string(kNeeded) +
           "name: a\nparent: {address: 'top:7312', certificate: p.pem, key: p.key, "
           "ca: ca.pem}\n");
  EXPECT_THAT(reading.errors, IsEmpty());
  EXPECT_EQ(reading.config.dialling.certificate, "p.pem");
}

TEST(CoordinatorConfig, AParentMayHaveSeveralAddresses) {
  const auto parent = [](const std::string& text) {
    return read(std::string(kNeeded) + "name: a\nparent: {" + text + "}\n");
  };
  const Reading reading = parent("addresses: [/a, 'unix:/b']");
  EXPECT_THAT(reading.errors, IsEmpty());
  ASSERT_TRUE(reading.config.parent);
  EXPECT_EQ(control::to_string(reading.config.parent->addresses), "/a, /b");
  EXPECT_FALSE(reading.config.dials_tcp());
  EXPECT_THAT(parent("addresses: [/a, 'top:7312']").errors,
              ElementsAre(HasSubstr("c.yaml:4: parent.addresses: TCP needs")));
  EXPECT_THAT(parent("addresses: [/a, '/b', /a, x]").errors,
              ElementsAre(HasSubstr("c.yaml:4: parent.addresses[2]: /a is given twice"),
                          HasSubstr("c.yaml:4: parent.addresses[3]: \"x\" is not an address")));
  EXPECT_THAT(parent("address: /a, addresses: [/b]").errors,
              ElementsAre(HasSubstr("parent.address: is beside `addresses`")));
  EXPECT_THAT(parent("").errors, ElementsAre(HasSubstr("parent.address: is missing")));
  EXPECT_THAT(parent("address: [/a, /b]").errors,
              ElementsAre(HasSubstr("parent.address: is a list")));
}

TEST(CoordinatorConfig, WhatThisHostLacksIsNamed) {
  const test::TemporaryDirectory folder;
  const auto errors_of = [&](const std::string& text) {
    ConfigErrors errors(folder.write("c.yaml", text));
    EXPECT_FALSE(load_config_file(errors));
    return errors.to_string();
  };
  EXPECT_THAT(errors_of("journal: j\nstages:\n  listen: {socket: /s, writers: [no-such-user]}\n"),
              HasSubstr("c.yaml:3: stages.listen.writers: "));
  EXPECT_THAT(errors_of("journal: j\nstages:\n  certificate: /none.pem\n  key: /none.key\n"
                        "  ca: /none.ca\n  dial: [{address: 'a:1'}]\n"),
              HasSubstr("c.yaml:3: stages.certificate: "));
  if (const Result<void> journal = check_journal(); !journal) {
    EXPECT_THAT(errors_of("journal: j\nlog: journal\nstages: {listen: {socket: s}}\n"),
                HasSubstr("c.yaml:2: log: " + journal.error().message));
  }
}

}  // namespace
}  // namespace vpfs::coordinator
