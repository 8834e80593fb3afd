#include "proxy/config/config_changes.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::proxy {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
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
    {"timeouts", "", "connect: 1 s", "timeouts.connect 5 s -> 1 s"},
    {"timeouts", "", "hold: 2 s", "timeouts.hold auto -> 2 s"},
    {"timeouts", "", "hold_min: 2 s", "timeouts.hold_min 1 min -> 2 s"},
    {"timeouts", "", "service: 2 s", "timeouts.service 1 min -> 2 s"},
    {"timeouts", "", "client_stall: 1 s", "timeouts.client_stall 2 s -> 1 s"},
    {"timeouts", "", "client_min_rate: 2 MiB/s", "timeouts.client_min_rate 1 MiB/s -> 2 MiB/s"},
    {"timeouts", "", "drain: 1 s", "timeouts.drain 20 s -> 1 s"},
    {"limits", "", "idle: 2 h", "limits.idle 1 h -> 2 h"},
    {"control", "", "name: stor0", "control.name none -> stor0"},
    {"scheduler", "depth: 16", "depth: 32", "scheduler.depth.requests 16 -> 32"}};

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
      "log: /var/log/vpfs.log, log_level: warn, local_congestion: bbr, write_back_by_file: "
      "false, busy_poll: 50 us}");
  EXPECT_THAT(
      changes(before, after),
      ElementsAre("proxy.servers none -> 10.0.0.1, 10.0.0.2",
                  "proxy.write_back_by_file true -> false", "proxy.workers 1 -> 2",
                  "proxy.busy_poll auto -> 50 us", "proxy.status_file none -> s.json",
                  "proxy.status_interval 5 s -> 1 s", "proxy.log stderr -> /var/log/vpfs.log",
                  "proxy.log_level info -> warn", "proxy.local_congestion cubic -> bbr"));
  EXPECT_THAT(changes(before, config_of("proxy: {listen: 'c:1', upstream: 'd:1'}")),
              ElementsAre("proxy.listen a:1 -> c:1", "proxy.upstream b:1 -> d:1",
                          "proxy.protocol beegfs -> orangefs"));
}

TEST(ConfigChanges, WhatTheStageChangesIsBehind) {
  EXPECT_THAT(between("virtual_pfs: {a: {}}\n", "limits: {connections: 5}\nvirtual_pfs: {b: {}}\n"),
              ElementsAre("limits.connections 10000 -> 5", "virtual PFS b added: weight 1",
                          "virtual PFS a removed"));
}

}  // namespace
}  // namespace vpfs::proxy
