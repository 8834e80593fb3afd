#include "control/host/prepared_config.h"

#include <string>

#include <gtest/gtest.h>

#include "test/control/host/program_config.h"

namespace vpfs::control {
namespace {

using ProgramSettings = PreparedConfig<test::ProgramConfig>;

test::ProgramConfig program_with(const std::string& rest) {
  return test::good_program("virtual_pfs: {a: {}}\n" + rest);
}

TEST(PreparedConfig, WhatDidNotChangeIsShared) {
  const std::string rules = "rules: [{match: {jobid: '*'}, virtual_pfs: a}]\n";
  const std::string job = "registered_jobs: [{jobid: j, client: 10.0.0.1}]\n";
  const ProgramSettings first(program_with(rules + job));
  const ProgramSettings other_jobs(program_with(rules), &first);
  EXPECT_EQ(other_jobs.classifier.rules(), first.classifier.rules());
  EXPECT_NE(other_jobs.jobs, first.jobs);
  const ProgramSettings other_rules(program_with(job), &first);
  EXPECT_NE(other_rules.classifier.rules(), first.classifier.rules());
  EXPECT_EQ(other_rules.jobs, first.jobs);
  EXPECT_EQ(first.jobs->size(), 1U);
  EXPECT_EQ(other_jobs.jobs->size(), 0U);
}

TEST(PreparedConfig, TheProgramsOwnPartStaysWhenTheStageGetsAnother) {
  const test::ProgramConfig own = program_with("program: {threads: 7}\n");
  const test::ProgramConfig mixed = with_stage(own, program_with("limits: {idle: 7 s}\n"));
  EXPECT_EQ(mixed.threads, 7U);
  EXPECT_EQ(mixed.idle, std::chrono::seconds(7));
}

}  // namespace
}  // namespace vpfs::control
