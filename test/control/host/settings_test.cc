#include "control/host/settings.h"

#include <string>

#include <gtest/gtest.h>

#include "test/control/host/program_config.h"

namespace vpfs::control {
namespace {

using ProgramSettings = Settings<test::ProgramConfig>;

test::ProgramConfig config_of(const std::string& rest) {
  ConfigErrors errors("p.yaml");
  test::ProgramConfig config = test::parse_program("virtual_pfs: {a: {}}\n" + rest, errors);
  EXPECT_EQ(errors.to_string(), "");
  return config;
}

TEST(Settings, WhatDidNotChangeIsShared) {
  const std::string rules = "rules: [{match: {jobid: '*'}, virtual_pfs: a}]\n";
  const std::string job = "registered_jobs: [{jobid: j, client: 10.0.0.1}]\n";
  const ProgramSettings first(config_of(rules + job));
  const ProgramSettings other_jobs(config_of(rules), &first);
  EXPECT_EQ(other_jobs.classifier.rules(), first.classifier.rules());
  EXPECT_NE(other_jobs.jobs, first.jobs);
  const ProgramSettings other_rules(config_of(job), &first);
  EXPECT_NE(other_rules.classifier.rules(), first.classifier.rules());
  EXPECT_EQ(other_rules.jobs, first.jobs);
  EXPECT_EQ(first.jobs->size(), 1U);
  EXPECT_EQ(other_jobs.jobs->size(), 0U);
}

TEST(Settings, TheProgramsOwnPartStaysWhenTheStageGetsAnother) {
  const test::ProgramConfig own = config_of("program: {threads: 7}\n");
  const test::ProgramConfig mixed = with_stage(own, config_of("limits: {idle: 7 s}\n"));
  EXPECT_EQ(mixed.threads, 7U);
  EXPECT_EQ(mixed.idle, std::chrono::seconds(7));
}

}  // namespace
}  // namespace vpfs::control
